"""Makes the worker that a command line describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from jobwire.cli.logs import JobLog
from jobwire.cli.target import load, reported
from jobwire.worker import Worker
from jobwire.worker.of_target import worker_of


def make_worker(target: str, queues: Sequence[str], options: dict[str, Any]) -> Worker:
    """Returns the worker. `options` are those that the command line gives."""
    found = load(target)
    if isinstance(found, Worker):
        if queues or options:
            flag = "--queue" if queues else "--" + next(iter(options)).replace("_", "-")
            raise typer.BadParameter(f"{target} is a Worker, which has options of its own; leave out {flag}")
        return found
    with reported():
        return worker_of(found, target, queues, {**options, "observers": [JobLog()]})
