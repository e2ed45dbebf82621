"""Reading jobs a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire import codec
from jobwire.backends.memory.store.queue_state import QueueState
from jobwire.errors import InvalidOption, MalformedPayload
from jobwire.model import Page, State

STATES = (State.WAITING, State.DELAYED, State.ACTIVE, State.COMPLETED, State.FAILED, State.CANCELLED)


def page(
    queue: QueueState, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
) -> Page:
    """Returns one page of jobs. The cursor is the sort key of the last job shown, so jobs that leave meanwhile shift
    nothing."""
    entries = _entries(queue, state)
    if reverse:
        entries = entries[::-1]
    if cursor is not None:
        last = _sort_key(cursor)
        entries = [(key, job_id) for key, job_id in entries if (key < last if reverse else key > last)]
    shown, more = entries[skip : skip + limit], len(entries) > skip + limit
    jobs = [queue.jobs[job_id].snapshot(queue.name) for _, job_id in shown]
    return Page(jobs, codec.dumps(shown[-1][0]).decode() if more else None)


def counts(queue: QueueState) -> dict[State, int]:
    return {
        State.WAITING: len(queue.ready),
        State.DELAYED: len(queue.delayed),
        State.ACTIVE: len(queue.active),
        State.WAITING_CHILDREN: len(queue.parents),
        **{state: len(ids) for state, ids in queue.finished.items()},
    }


def _entries(queue: QueueState, state: State) -> Sequence[tuple[tuple[int, ...], str]]:
    if state is State.WAITING:
        return queue.ready.ordered()
    if state is State.DELAYED:
        return queue.delayed.ordered()
    if state in (State.ACTIVE, State.WAITING_CHILDREN):
        ids = queue.active if state is State.ACTIVE else queue.parents
        return [((number,), job_id) for job_id, number in ids.items()]
    newest_first = reversed(queue.finished.get(state, {}).items())
    return [((-number,), job_id) for job_id, number in newest_first]


def _sort_key(cursor: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in codec.loads(cursor))
    except (MalformedPayload, TypeError, ValueError):
        raise InvalidOption("cursor", cursor, "must be the cursor of an earlier page") from None
