"""Writes src/jobwire/sync.pyi, the types of `jobwire.sync`, from the asynchronous classes.

python tools/sync_stub.py            write it
python tools/sync_stub.py --check    exit 1 if it is out of date
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "jobwire"
STUB = SOURCE / "sync.pyi"
CLASSES = {
    "Connection": {"connection.py": "Connection"},
    "Queue": {"queue.py": "Queue"},
    "QueueAdmin": {"queue_admin.py": "QueueAdmin"},
    "ClaimedJob": {"claimed.py": "ClaimedJob", "held_job.py": "HeldJob", "running_job.py": "Running"},
    "Flow": {"flow.py": "Flow"},
    "Worker": {"worker/worker.py": "Worker"},
}
"""Each class, and those that it is made of: itself and what it inherits from, by file."""
GIVEN = {"ClaimedJob", "QueueAdmin"}
"""Classes that callers are given and never make."""

HEAD = """# Made by tools/sync_stub.py from the asynchronous classes: change those.
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Never, Self, Unpack

from jobwire import model, urls
from jobwire.boundary import Backend, Capabilities, Claim, Feature
from jobwire.checks import Seconds
from jobwire.flow import FlowJob
from jobwire.model import Children, Event, JobKey, Limits, Schedule, State, WorkerInfo
from jobwire.options import DEFAULT_SIZE_LIMIT, NO_DATA, JobOptions, Keep, NewJob
from jobwire.rate import Rate
from jobwire.worker import Observer, Stats
from jobwire.worker.handlers import Executor, Handler
from jobwire.worker.settings import Strategy

def connect(
    url: str | None = None, *, client: object | None = None, wait_for_store: Seconds = 0.0
) -> Connection: ...

class Job(model.Job):
    def wait(self, timeout: float | timedelta | None = None) -> Any: ...  # type: ignore[override]

class JobTree(model.JobTree):
    job: Job
    children: tuple[JobTree, ...]

class Page(list[Job]):
    cursor: str | None
"""


class Blocking(ast.NodeTransformer):
    """Asynchronous definitions become plain ones; annotations name the blocking types."""

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self.visit(ast.FunctionDef(**{field: getattr(node, field, None) for field in ast.FunctionDef._fields}))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name("Iterator" if node.id == "AsyncIterator" else node.id)


def class_in(file: str, name: str) -> ast.ClassDef:
    """The class that the file defines."""
    tree = ast.parse((SOURCE / file).read_text())
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def members(tree: ast.ClassDef, special: tuple[str, ...]) -> list[str]:
    """The lines of a class that a caller may see: what is public, and these special methods."""
    lines: list[str] = []
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        name = {"__aenter__": "__enter__", "__aexit__": "__exit__"}.get(node.name, node.name)
        if name.startswith("_") and name not in special:
            continue
        plain = Blocking().visit(node)
        plain.name = name
        plain.body = [ast.Expr(ast.Constant(...))]
        lines += ["    " + line for line in ast.unparse(ast.fix_missing_locations(plain)).splitlines()]
    return lines


ATTRIBUTES = {
    "ClaimedJob": [],
    "Connection": ["address: urls.Address", "backend: Backend"],
    "Flow": ["connection: Any"],
    "Queue": ["name: str", "connection: Any", "admin: QueueAdmin"],
    "QueueAdmin": [],
    "Worker": ["id: str", "queue: str", "stats: Stats", "connection: Any"],
}


def stub() -> str:
    text = HEAD
    for name, parts in CLASSES.items():
        lines = [f"    {line}" for line in ATTRIBUTES[name]]
        for file, part in parts.items():
            special = ("__init__",) if name not in GIVEN else ()
            lines += members(class_in(file, part), (*special, "__enter__", "__exit__") if part == name else ())
        text += "\n".join(["", f"class {name}:", *lines, ""])
    text = text.replace("error: BaseException | None, trace: TracebackType | None", "error: object, trace: object")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", "sync.pyi", "-"],
        input=text, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if STUB.read_text() == stub() else f"{STUB.name} is out of date: run python tools/sync_stub.py")
    STUB.write_text(stub())
