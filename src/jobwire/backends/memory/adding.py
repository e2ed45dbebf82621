"""Adding jobs: ids, duplicates, unique keys."""

from __future__ import annotations

from jobwire.backend import Added, PreparedJob
from jobwire.backends.memory.queue_state import QueueState
from jobwire.backends.memory.record import Record, new_record
from jobwire.errors import InvalidOption
from jobwire.model import State
from jobwire.options import NewJob, Unique, seconds

MAX_PRIORITY = 2**21 - 1


def check(new: NewJob) -> None:
    if new.id is not None and new.id.isdecimal():
        raise InvalidOption("id", new.id, "must not be a whole number: the store gives those itself")
    if new.priority is not None and not 0 <= new.priority <= MAX_PRIORITY:
        raise InvalidOption("priority", new.priority, f"must be from 0 (first) to {MAX_PRIORITY} (last)")
    for name in new.extra:
        raise InvalidOption(f"extra.{name}", new.extra[name], "is not an option of the memory store")


def add(queue: QueueState, prepared: PreparedJob, now: int) -> Added:
    new = prepared.new
    queue.last_id += 1
    job_id = new.id if new.id is not None else str(queue.last_id)
    if job_id in queue.jobs:
        queue.happen("duplicated", now, queue.jobs[job_id])
        return Added(job_id, "duplicate id")
    record = new_record(job_id, prepared, now)
    if new.unique is not None:
        holder = _admit(queue, record, new.unique, now)
        if holder is not None:
            return Added(holder, "unique key taken")
    insert(queue, record, now)
    return Added(job_id)


def insert(queue: QueueState, record: Record, now: int) -> None:
    queue.jobs[record.id] = record
    queue.happen("added", now, record, name=record.name)
    queue.place(record, now, front=record.lifo)


def _admit(queue: QueueState, record: Record, unique: Unique, now: int) -> str | None:
    """Take the key for the job, or name the job that holds it already."""
    ttl = round(seconds("unique.ttl", unique.ttl) * 1000) if unique.ttl is not None else None
    until = now + ttl if ttl is not None else None
    holder = queue.unique.holder(unique.key, now)
    if holder is not None:
        owner = queue.jobs.get(holder.job_id)
        if unique.replace and owner is not None and owner.state is State.DELAYED:
            kept_until = until if unique.extend or ttl is None else holder.until
            queue.forget(owner)
            queue.happen("removed", now, owner, prev=State.DELAYED.value)
            queue.happen("deduplicated", now, record, deduplicationId=unique.key, deduplicatedJobId=owner.id)
            until = kept_until
        else:
            if unique.extend and not unique.replace:
                holder.until = until
            if owner is not None:
                queue.happen("deduplicated", now, owner, deduplicationId=unique.key, deduplicatedJobId=record.id)
            return holder.job_id
    record.unique_key = unique.key
    queue.unique.take(unique.key, record.id, until)
    return None
