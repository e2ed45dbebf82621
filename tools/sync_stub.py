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
CLASSES = {"connection.py": "Connection", "queue.py": "Queue", "worker/worker.py": "Worker"}

HEAD = """# Made by tools/sync_stub.py from the asynchronous classes: change those.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Self, Unpack

from jobwire import model, urls
from jobwire.backend import Backend, Capabilities
from jobwire.model import Event, Schedule, State, WorkerInfo
from jobwire.options import DEFAULT_SIZE_LIMIT, JobOptions, Keep, NewJob, Seconds
from jobwire.worker import Observer, Stats
from jobwire.worker.handlers import Executor, Handler

def connect(url: str | None = None) -> Connection: ...

class Job(model.Job):
    def wait(self, timeout: float | None = None) -> Any: ...  # type: ignore[override]

class Page(list[Job]):
    cursor: str | None
"""


class Blocking(ast.NodeTransformer):
    """Asynchronous definitions become plain ones; annotations name the blocking types."""

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self.visit(ast.FunctionDef(**{field: getattr(node, field, None) for field in ast.FunctionDef._fields}))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name("Iterator" if node.id == "AsyncIterator" else node.id)


def members(tree: ast.ClassDef) -> list[str]:
    """The lines of a class that a caller may see."""
    lines: list[str] = []
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        name = {"__aenter__": "__enter__", "__aexit__": "__exit__"}.get(node.name, node.name)
        if name.startswith("_") and name not in ("__init__", "__enter__", "__exit__"):
            continue
        if isinstance(node, ast.FunctionDef) and not node.decorator_list and name != "__init__":
            continue
        plain = Blocking().visit(node)
        plain.name = name
        plain.body = [ast.Expr(ast.Constant(...))]
        lines += ["    " + line for line in ast.unparse(ast.fix_missing_locations(plain)).splitlines()]
    return lines


ATTRIBUTES = {
    "Connection": ["address: urls.Address", "backend: Backend"],
    "Queue": ["name: str", "connection: Any"],
    "Worker": ["id: str", "queue: str", "stats: Stats"],
}


def stub() -> str:
    text = HEAD
    for file, name in CLASSES.items():
        tree = ast.parse((SOURCE / file).read_text())
        found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
        text += "\n".join(["", f"class {name}:", *(f"    {line}" for line in ATTRIBUTES[name]), *members(found), ""])
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
