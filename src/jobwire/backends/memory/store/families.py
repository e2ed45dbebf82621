"""Parents and children, across the queues of a store: which job waits for which, and what a finished child changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobwire import codec
from jobwire.backends.memory.store.queue_state import QueueState
from jobwire.backends.memory.store.record import Child, Record
from jobwire.errors import JobNotFound, WrongState
from jobwire.model import Children, JobKey, State
from jobwire.options import Parent


def check_parent(queue: QueueState, job_id: str | None, parent: Parent) -> None:
    """Raises if a job of this id can't become a child of the parent."""
    if parent.id not in queue.of(parent.queue).jobs:
        raise JobNotFound(parent.queue, parent.id)
    check_free(queue, job_id, parent)


def check_free(queue: QueueState, job_id: str | None, parent: Parent) -> None:
    """Raises if a job of this id exists and has another parent."""
    known = queue.jobs.get(job_id or "")
    if known is None or known.parent is None or (known.parent.queue, known.parent.id) == (parent.queue, parent.id):
        return
    if known.parent.id in queue.of(known.parent.queue).jobs:
        raise WrongState(f"job {job_id!r} exists already, as the child of another parent")


def join(queue: QueueState, record: Record, parent: Parent) -> None:
    """Makes the job a child. If it has completed already, it counts as done. The caller releases the parent."""
    record.parent = parent
    above = queue.of(parent.queue).jobs[parent.id]
    done = record.state is State.COMPLETED
    above.children[JobKey(queue.name, record.id)] = Child("done", record.result) if done else Child("pending")


def park(queue: QueueState, record: Record, now: int) -> None:
    """Parks the job until its children have finished. Makes it ready at once if none is pending."""
    active = record.state is State.ACTIVE
    queue.take_out(record)
    if active and not pending(record):
        record.due = now
        queue.put(record, now, prev=State.ACTIVE, front=True)
        return
    record.state = State.WAITING_CHILDREN
    queue.parents[record.id] = next(queue.numbers)
    queue.log_event("waiting-children", now, record, **({"prev": "active"} if active else {}))


def release_if_done(queue: QueueState, record: Record, now: int) -> None:
    if not pending(record):
        release(queue, record, now)


def release(queue: QueueState, record: Record, now: int) -> None:
    """Makes a parked parent ready, or delayed if it has a delay of its own, which counts from now."""
    if record.state is not State.WAITING_CHILDREN:
        return
    queue.take_out(record)
    record.due = now + record.delay
    queue.put(record, now, prev=State.WAITING_CHILDREN, front=True)


def update_parent(queue: QueueState, record: Record, now: int) -> None:
    """Updates the parent of a job that has finished. For a failure, the child's options decide what the parent does."""
    found = _parent(queue, record)
    if found is None:
        return
    home, parent = found
    key = JobKey(queue.name, record.id)
    if parent.children.get(key, Child("done")).kind != "pending":
        return
    if record.state is State.COMPLETED:
        parent.children[key] = Child("done", record.result)
        release_if_done(home, parent, now)
        return
    match record.parent.on_failure if record.parent is not None else "wait":
        case "fail":
            parent.children[key] = Child("failed")
            parent.doomed = f"child {key.queue}:{key.id} failed"
            if parent.state is State.DELAYED:
                home.take_out(parent)
                parent.state = State.WAITING_CHILDREN
            parent.delay = 0
            release(home, parent, now)
        case "continue":
            parent.children[key] = Child("ignored", error=record.error or "")
            release(home, parent, now)
        case "ignore":
            parent.children[key] = Child("ignored", error=record.error or "")
            release_if_done(home, parent, now)
        case "remove":
            del parent.children[key]
            release_if_done(home, parent, now)
        case _:
            pass


def leave(queue: QueueState, record: Record, now: int) -> None:
    """Removes a job that is being deleted from its parent's children, so that the parent does not wait for it."""
    found = _parent(queue, record)
    if found is not None and found[1].children.get(JobKey(queue.name, record.id), Child("done")).kind == "pending":
        del found[1].children[JobKey(queue.name, record.id)]
        release_if_done(*found, now)


def failed(record: Record) -> bool:
    """Returns True if a child has failed whose failure fails this job."""
    return any(child.kind == "failed" for child in record.children.values())


def pending(record: Record) -> bool:
    return any(child.kind == "pending" for child in record.children.values())


def wait_for_again(queue: QueueState, record: Record) -> None:
    """Makes the parent of a retried child wait for it again."""
    found = _parent(queue, record)
    key = JobKey(queue.name, record.id)
    if found is not None and key in found[1].children:
        found[1].children[key] = Child("pending")


def descendants(queue: QueueState, record: Record) -> Iterator[tuple[QueueState, Record]]:
    for key in record.children:
        below = queue.of(key.queue)
        if key.id in below.jobs:
            yield below, below.jobs[key.id]
            yield from descendants(below, below.jobs[key.id])


def described(record: Record | None) -> Children:
    if record is None:
        return Children()
    of = record.children.items()
    return Children(
        values={key: codec.loads(child.result or b"null") for key, child in of if child.kind == "done"},
        ignored={key: child.error for key, child in of if child.kind == "ignored"},
        pending=tuple(key for key, child in of if child.kind == "pending"),
        failed=tuple(key for key, child in of if child.kind == "failed"),
    )


def keys_of(record: Record | None, limit: int) -> Sequence[JobKey]:
    return list(record.children)[:limit] if record is not None else []


def _parent(queue: QueueState, record: Record) -> tuple[QueueState, Record] | None:
    if record.parent is None:
        return None
    home = queue.of(record.parent.queue)
    parent = home.jobs.get(record.parent.id)
    return None if parent is None else (home, parent)
