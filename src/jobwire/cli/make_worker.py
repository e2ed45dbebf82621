"""Makes the worker that a command line describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import typer

from jobwire import spelling
from jobwire.cli.logs import JobLog
from jobwire.cli.target import load
from jobwire.worker import Worker


@runtime_checkable
class MakesWorker(Protocol):
    """An object that makes its worker itself, such as an application of tasks."""

    def make_worker(self, **options: Any) -> Worker:
        """Returns a worker. The options are those of Worker that the command line gives, `observers`, and `queues`: the
        names of the queues to work on, if not all."""
        ...


def make_worker(target: str, queues: Sequence[str], options: dict[str, Any]) -> Worker:
    """Returns the worker. `options` are those that the command line gives."""
    found = load(target)
    if isinstance(found, Worker):
        if queues or options:
            flag = "--queue" if queues else "--" + next(iter(options)).replace("_", "-")
            raise typer.BadParameter(f"{target} is a Worker, which has options of its own; leave out {flag}")
        return found
    options["observers"] = [JobLog()]
    if isinstance(found, MakesWorker) and not isinstance(found, type):
        return found.make_worker(**options, **({"queues": tuple(queues)} if queues else {}))
    if isinstance(found, Mapping):
        return Worker(_only(target, cast("Mapping[str, Any]", found), queues), **options)
    if not callable(found):
        raise typer.BadParameter(
            f"{target} is neither a Worker nor a function nor a dict of queues, but of type {type(found).__name__}"
        )
    if not queues:
        raise typer.BadParameter(f"{target} is a handler: name its queue with --queue")
    if len(queues) > 1:
        raise typer.BadParameter(f"{target} is a handler of one queue; for several, give a dict of queues to handlers")
    return Worker(queues[0], cast("Any", found), **options)


def _only(target: str, handlers: Mapping[str, Any], queues: Sequence[str]) -> Mapping[str, Any]:
    """Returns the handlers of these queues, or all of them if no queue is named."""
    for queue in queues:
        if queue not in handlers:
            near = spelling.closest(queue, handlers)
            hint = f"did you mean {near}?" if near else f"it has {', '.join(map(str, handlers))}"
            raise typer.BadParameter(f"{target} has no queue {queue!r}; {hint}")
    return {queue: handlers[queue] for queue in queues} if queues else handlers
