"""Makes the worker of an object that a user names: a handler, a dict of queues to handlers, or an app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from jobwire import spelling
from jobwire.worker.target import BadTarget
from jobwire.worker.worker import Worker


@runtime_checkable
class MakesWorker(Protocol):
    """An object that makes its worker itself, such as an application of tasks."""

    def make_worker(self, **options: Any) -> Worker:
        """Returns a worker. The options are those of Worker that are given, `observers`, and `queues`: the names of the
        queues to work on, if not all."""
        ...


def worker_of(found: Any, target: str, queues: Sequence[str], options: Mapping[str, Any]) -> Worker:
    """Returns a worker of the object that `target` names."""
    if isinstance(found, MakesWorker) and not isinstance(found, type):
        return found.make_worker(**options, **({"queues": tuple(queues)} if queues else {}))
    if isinstance(found, Mapping):
        return Worker(_only(target, cast("Mapping[str, Any]", found), queues), **options)
    if not callable(found):
        raise BadTarget(
            f"{target} is neither a Worker nor a function nor a dict of queues, but of type {type(found).__name__}"
        )
    if not queues:
        raise BadTarget(f"{target} is a handler: name its queue with --queue")
    if len(queues) > 1:
        raise BadTarget(f"{target} is a handler of one queue; for several, give a dict of queues to handlers")
    return Worker(queues[0], cast("Any", found), **options)


def _only(target: str, handlers: Mapping[str, Any], queues: Sequence[str]) -> Mapping[str, Any]:
    """Returns the handlers of these queues, or all of them if no queue is named."""
    for queue in queues:
        if queue not in handlers:
            near = spelling.closest(queue, handlers)
            hint = f"did you mean {near}?" if near else f"it has {', '.join(map(str, handlers))}"
            raise BadTarget(f"{target} has no queue {queue!r}; {hint}")
    return {queue: handlers[queue] for queue in queues} if queues else handlers
