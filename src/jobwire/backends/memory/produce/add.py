"""Adding jobs: ids, duplicates, unique keys."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from jobwire.backends.memory.store import families
from jobwire.backends.memory.store.queue_state import QueueState
from jobwire.backends.memory.store.record import Record, new_record
from jobwire.backends.memory.store.store import Store
from jobwire.boundary import Added, FlowNode, PreparedJob, levels
from jobwire.checks import seconds
from jobwire.model import AddStatus, State
from jobwire.options import Parent, Unique


def add(
    queue: QueueState,
    prepared: PreparedJob,
    now: int,
    *,
    job_id: str | None = None,
    parent: Parent | None = None,
    waits: bool = False,
) -> Added:
    """Stores a job. In a flow, the caller also gives its id, its parent and whether it waits for children."""
    new = prepared.new
    if new.parent is not None:
        families.check_parent(queue, new.id, new.parent)
    queue.last_id += 1
    job_id = job_id or new.id or str(queue.last_id)
    parent = parent or new.parent
    if job_id in queue.jobs:
        queue.log_event("duplicated", now, queue.jobs[job_id])
        if parent is not None:
            families.join(queue, queue.jobs[job_id], parent)
        return Added(job_id, AddStatus.DUPLICATE)
    record = new_record(job_id, prepared, now)
    if new.unique is not None:
        holder = _admit(queue, record, new.unique, now)
        if holder is not None:
            return Added(holder, AddStatus.DUPLICATE)
    if parent is not None:
        families.join(queue, record, parent)
    insert(queue, record, now, waits=waits)
    return Added(job_id)


def insert(queue: QueueState, record: Record, now: int, *, waits: bool = False) -> None:
    queue.jobs[record.id] = record
    if queue.added is not None:
        queue.added.append(record)
    queue.log_event("added", now, record, name=record.name)
    if waits:
        families.park(queue, record, now)
    else:
        queue.put(record, now, front=record.lifo)


def add_flow(store: Store, roots: Sequence[FlowNode], now: int) -> list[Added]:
    """Adds whole trees. Checks everything that could be refused before it stores the first job."""
    nodes = levels(roots)
    ids = {id(node): node.job.new.id or str(uuid.uuid4()) for node in nodes}
    parents = {id(root): root.job.new.parent for root in roots}
    for root in roots:
        if root.job.new.parent is not None:
            families.check_parent(store.queue(root.queue), root.job.new.id, root.job.new.parent)
    for node in nodes:
        for child in node.children:
            parent = parents[id(child)] = Parent(ids[id(node)], node.queue, child.on_failure)
            families.check_free(store.queue(child.queue), child.job.new.id, parent)
    added = [
        add(
            store.queue(node.queue),
            node.job,
            now,
            job_id=ids[id(node)],
            parent=parents[id(node)],
            waits=bool(node.children),
        )
        for node in nodes
    ]
    for node in nodes:
        queue = store.queue(node.queue)
        families.release_if_done(queue, queue.jobs[ids[id(node)]], now)
    return added


def _admit(queue: QueueState, record: Record, unique: Unique, now: int) -> str | None:
    """Takes the unique key for the job. Returns the id of the job that holds it already, or None."""
    ttl = round(seconds("unique.ttl", unique.ttl) * 1000) if unique.ttl is not None else None
    until = now + ttl if ttl is not None else None
    holder = queue.unique.holder(unique.key, now)
    if holder is not None:
        owner = queue.jobs.get(holder.job_id)
        if unique.replace and owner is not None and owner.state is State.DELAYED:
            kept_until = until if unique.extend or ttl is None else holder.until
            queue.forget(owner)
            queue.log_event("removed", now, owner, prev=State.DELAYED.value)
            queue.log_event("deduplicated", now, record, deduplicationId=unique.key, deduplicatedJobId=owner.id)
            until = kept_until
        else:
            if unique.extend and not unique.replace:
                holder.until = until
            if owner is not None:
                queue.log_event("deduplicated", now, owner, deduplicationId=unique.key, deduplicatedJobId=record.id)
            return holder.job_id
    record.unique_key = unique.key
    queue.unique.take(unique.key, record.id, until)
    return None
