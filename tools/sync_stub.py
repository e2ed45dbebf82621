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
    "Task": {"tasks/task.py": "Task"},
    "CoroutineTask": {"tasks/task.py": "CoroutineTask"},
    "FunctionTask": {"tasks/task.py": "FunctionTask"},
    "Decorator": {"tasks/app.py": "Decorator"},
    "App": {"tasks/app.py": "App"},
    "Testing": {"testing/app.py": "Testing"},
    "Chain": {"tasks/compose.py": "Chain"},
    "Group": {"tasks/compose.py": "Group"},
    "GroupJobs": {"tasks/compose.py": "GroupJobs"},
}
"""Each class, and those that it is made of: itself and what it inherits from, by file."""
BASES = {
    "ClaimedJob": "(Generic[In_co])",
    "Task": "(Generic[P, R])",
    "CoroutineTask": "(Task[P, R])",
    "FunctionTask": "(Task[P, R])",
    "Chain": "(Generic[Out_co])",
    "Group": "(Generic[Out_co])",
    "GroupJobs": "(Sequence[Job[Out_co]])",
}
FUNCTIONS = {"tasks/compose.py": ("First", "chain", "group", "chord")}
"""Functions, and names of types, that are the same in both faces but for the classes that they name."""
GIVEN = {
    *("Chain", "ClaimedJob", "CoroutineTask", "Decorator", "FunctionTask", "Group", "GroupJobs", "QueueAdmin", "Task"),
    "Testing",
}
"""Classes that callers are given and never make."""

HEAD = """# Made by tools/sync_stub.py from the asynchronous classes: change those.
# pyright: reportOverlappingOverload=false
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, Concatenate, Generic, Literal, Never, ParamSpec, Self, TypeVar, Unpack, overload

from jobwire import model, urls
from jobwire.boundary import Acted, Backend, Capabilities, Claim, Feature, Reading
from jobwire.checks import Seconds
from jobwire.flow import FlowJob
from jobwire.generics import In_co, Out_co
from jobwire.model import Children, Event, JobKey, Limits, Schedule, State, WorkerInfo
from jobwire.options import DEFAULT_SIZE_LIMIT, NO_DATA, JobOptions, Keep, NewJob
from jobwire.rate import Rate
from jobwire.tasks.app import AnyHandler, AppLifespan
from jobwire.tasks.define import TaskOptions
from jobwire.tasks.depends import Provider
from jobwire.tasks.failures import AnyHook, Hook
from jobwire.tasks.parameters import previous as previous
from jobwire.tasks.task import Call
from jobwire.tasks.trees import Planned
from jobwire.tasks.unique import By
from jobwire.testing import Clock
from jobwire.worker import BlockingJob, Observer, QueueHandler, Stats
from jobwire.worker.handlers import Executor, Handler, MakesRunner, Runner
from jobwire.worker.lifetime import Lifespan
from jobwire.worker.queue_handler import QueueHandlers
from jobwire.worker.settings import Strategy

def connect(
    url: str | None = None, *, client: object | None = None, wait_for_store: Seconds = 0.0
) -> Connection: ...

def current_job() -> BlockingJob[Any]: ...

P = ParamSpec("P")
Rest = ParamSpec("Rest")
R = TypeVar("R")

class Job(model.Job[Out_co]):
    def wait(self, timeout: float | timedelta | None = None) -> Out_co: ...  # type: ignore[override]

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
    overloaded: set[str] = set()
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if any(ast.unparse(one) == "overload" for one in node.decorator_list):
            overloaded.add(node.name)
        elif node.name in overloaded:
            continue  # the one that is called, which is no part of a stub
        name = {"__aenter__": "__enter__", "__aexit__": "__exit__"}.get(node.name, node.name)
        if name.startswith("_") and name not in special:
            continue
        plain = Blocking().visit(node)
        plain.name = name
        plain.body = [ast.Expr(ast.Constant(...))]
        lines += ["    " + line for line in ast.unparse(ast.fix_missing_locations(plain)).splitlines()]
    return lines


SPECIAL = ("__call__", "__enter__", "__exit__", "__getitem__", "__len__")
ATTRIBUTES = {
    "ClaimedJob": [],
    "Connection": ["address: urls.Address", "backend: Backend"],
    "Flow": ["connection: Any"],
    "Queue": ["name: str", "connection: Any", "admin: QueueAdmin"],
    "QueueAdmin": [],
    "Worker": ["id: str", "connection: Any"],
    "Task": ["function: Callable[..., Any]"],
    "CoroutineTask": [],
    "FunctionTask": [],
    "Decorator": [],
    "App": ["state: SimpleNamespace"],
    "Testing": ["clock: Clock"],
    "Chain": [],
    "Group": [],
    "GroupJobs": [],
}


def functions(file: str, names: tuple[str, ...]) -> list[str]:
    """The lines of the functions and types of a file."""
    lines: list[str] = []
    overloaded: set[str] = set()
    for node in ast.parse((SOURCE / file).read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in names:
            lines.append(ast.unparse(node))
        elif isinstance(node, ast.FunctionDef) and node.name in names:
            if any(ast.unparse(one) == "overload" for one in node.decorator_list):
                overloaded.add(node.name)
            elif node.name in overloaded:
                continue
            node.body = [ast.Expr(ast.Constant(...))]
            lines.append(ast.unparse(node))
    return lines


def stub() -> str:
    text = HEAD
    for name, parts in CLASSES.items():
        lines = [f"    {line}" for line in ATTRIBUTES[name]]
        for file, part in parts.items():
            special = ("__init__",) if name not in GIVEN else ()
            lines += members(class_in(file, part), (*special, *SPECIAL) if part == name else ())
        text += "\n".join(["", f"class {name}{BASES.get(name, '')}:", *lines, ""])
    text += "\n".join(["", *(line for file, names in FUNCTIONS.items() for line in functions(file, names)), ""])
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
