"""The order that all tasks of a fleet get, and the worker that a task makes of it.

The handler travels as text (`shop.mail:send`), which each task imports by itself, or pickled. A task unpickles it in
its own code: a module that is missing there is then that worker's error, in a sentence, and not one of Spark.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobwire.errors import InvalidOption
from jobwire.pipeline.privacy.rules import QueueRules
from jobwire.worker import Observer, Worker
from jobwire.worker.of_target import MakesWorker, worker_of
from jobwire.worker.target import BadTarget, load

_NOT_SHARED = {
    "worker_id": "can't be given: each task makes a worker of its own",
    "observers": "can't be given: they would be copied into each task",
}


@dataclass(frozen=True, kw_only=True)
class Order:
    """Everything that a task needs. `pickled` holds the handler and the options of its Worker."""

    run: str
    queue: str
    tasks: int
    pickled: bytes
    url: str | None
    """The store. None: the handler is an app, which has its own."""
    default_url: str
    """JOBWIRE_URL of the tasks."""
    folder: str
    """The driver's folder, from which modules are imported where it exists."""
    lake: str
    until: float | None
    """The end of the work in seconds since 1970. None: until there is no job left."""
    seconds: float | None
    """The time that the work may take at most, on machines whose clocks are late."""
    report_every: float
    """Seconds between two reports of a worker."""
    stay: float
    """Seconds that a task which replaces a lost one waits for its jobs: see worker_thread.py."""
    rules: QueueRules | None = None
    """The rules of privacy of the queue, if it has some."""


def pickled(handler: Any, options: Mapping[str, Any]) -> bytes:
    """Returns the handler and its worker's options for the tasks. Functions of a notebook travel as they are."""
    from pyspark import cloudpickle  # noqa: PLC0415 an extra

    if (file := file_of(handler)) is not None:
        handler = f"{file.resolve()}:{handler.rpartition(':')[2]}"
    return cloudpickle.dumps((handler, dict(options)))


def label_of(handler: Any) -> str:
    """Returns the handler in words."""
    return handler if isinstance(handler, str) else getattr(handler, "__qualname__", type(handler).__name__)


def make_worker(
    handler: Any, queue: str, url: str | None, options: Mapping[str, Any], observer: Observer | None = None
) -> Worker:
    """Returns a worker of the queue. An app has a store of its own, so it does not get the URL."""
    for name, rule in _NOT_SHARED.items():
        if name in options:
            raise InvalidOption(name, options[name], rule)
    label = label_of(handler)
    found = load(handler) if isinstance(handler, str) else handler
    if isinstance(found, Worker):
        raise BadTarget(f"{label} is a Worker, of which a task can't make another one: name its handler or its app")
    given = {**options, **({} if observer is None else {"observers": [observer]})}
    if url is not None and not is_app(found):
        given["url"] = url
    return worker_of(found, label, (queue,), given)


def is_app(found: Any) -> bool:
    return isinstance(found, MakesWorker) and not isinstance(found, type)


@contextmanager
def worker_in_task(order: Order, observer: Observer) -> Generator[Worker]:
    """Yields the worker of a task. Modules and stores without a URL are found as in the driver."""
    before = os.environ.get("JOBWIRE_URL")
    os.environ["JOBWIRE_URL"] = order.default_url
    if os.path.isdir(order.folder) and order.folder not in sys.path:
        sys.path.insert(0, order.folder)
    try:
        from pyspark import cloudpickle  # noqa: PLC0415 an extra

        handler, options = cloudpickle.loads(order.pickled)
        yield make_worker(_here(handler), order.queue, order.url, options, observer)
    finally:
        if before is None:
            del os.environ["JOBWIRE_URL"]
        else:
            os.environ["JOBWIRE_URL"] = before


def _here(handler: Any) -> Any:
    """Returns the handler as this machine finds it: a file that is not here was sent, and is imported by its name."""
    if isinstance(handler, str):
        module, _, name = handler.rpartition(":")
        if module.endswith(".py") and not os.path.isfile(module):
            return f"{Path(module).stem}:{name}"
    return handler


def file_of(handler: Any) -> Path | None:
    """Returns the file that a handler such as `./mail.py:send` is in."""
    module = handler.rpartition(":")[0] if isinstance(handler, str) else ""
    return Path(module) if module.endswith(".py") else None
