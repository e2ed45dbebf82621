"""Parents that wait for a job that has failed: they wait until someone retries it."""

from __future__ import annotations

from dataclasses import dataclass

from jobwire.connection import Connection
from jobwire.errors import JobNotFound
from jobwire.flow import Flow
from jobwire.model import JobKey, JobTree, State
from jobwire.queue import Queue

_PARENTS, _WIDTH = 5, 20
"""Parents of a queue that are looked at, and finished and pending children of each."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A parent, and the failed job that it waits for."""

    parent: str
    child: JobKey


async def blocked_in(queue: Queue, connection: Connection) -> Blocked | None:
    """Returns one of the first parents that wait for a failed job."""
    for parent in await queue.jobs(State.WAITING_CHILDREN, limit=_PARENTS):
        async with Flow(connection) as flow:
            try:
                tree = await flow.get(queue.name, parent.id, depth=2, width=_WIDTH)
            except JobNotFound:
                continue
        failed = await _needed(queue, tree)
        if failed is not None and tree.job.state is State.WAITING_CHILDREN:
            return Blocked(parent.id, failed)
    return None


async def _needed(queue: Queue, tree: JobTree) -> JobKey | None:
    """Returns a child that has failed and whose failure the parent does not ignore."""
    failed = [JobKey(one.job.queue, one.job.id) for one in tree.children if one.job.state is State.FAILED]
    if failed and len(tree.children) < _WIDTH:  # else to ask for all children would be without a bound
        ignored = (await queue.children(tree.job.id)).ignored
        failed = [one for one in failed if one not in ignored]
    return failed[0] if failed else None
