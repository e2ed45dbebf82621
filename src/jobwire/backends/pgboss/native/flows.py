"""Flows: jobs that wait until others have completed, added together or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.produce.add import Adding
from jobwire.backends.pgboss.produce.graph import Edge, check_schema, store_graph
from jobwire.backends.pgboss.produce.native_options import columns_of
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.pgboss.rules import check_options, encoded
from jobwire.backends.uuid7 import new_ids
from jobwire.errors import InvalidOption, StoreRefused
from jobwire.model import JobKey


@dataclass(frozen=True, slots=True)
class GraphJob:
    """One job of a graph of jobs. `ref` names it for the others, which list it in `depends_on` to wait for it.

    pg-boss's graphs differ from jobwire.FlowJob's trees: several jobs may wait for the same one.
    """

    ref: str
    queue: str
    data: Any = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    depends_on: Sequence[str] = ()


async def add_flow(store: Store, queues: Queues, adding: Adding, jobs: Sequence[GraphJob]) -> dict[str, str]:
    """Adds the jobs in one transaction. Returns the id of each by its ref. Raises StoreRefused if one is not
    admitted."""
    check_schema(store)
    _check(jobs)
    ids = dict(zip((job.ref for job in jobs), new_ids(len(jobs)), strict=True))
    parents = {ref for job in jobs for ref in job.depends_on}
    rows: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        waits_for = len(set(job.depends_on))
        row = {**columns_of(job.options), "id": ids[job.ref], "data": orjson.Fragment(encoded("data", job.data))}
        row |= {"blocked": waits_for > 0, "pending": waits_for, "blocking": job.ref in parents}
        rows.setdefault(job.queue, []).append(row)
    keys = {job.ref: JobKey(job.queue, ids[job.ref]) for job in jobs}
    edges = [Edge(keys[job.ref], keys[ref]) for job in jobs for ref in dict.fromkeys(job.depends_on)]
    refused = await store_graph(store, queues, adding, rows, edges)
    left_out = [ref for ref, job_id in ids.items() if job_id in refused]
    if left_out:
        raise StoreRefused(f"no job of the flow was added: {', '.join(left_out)} would break the policy of its queue")
    return ids


def _check(jobs: Sequence[GraphJob]) -> None:
    for index, job in enumerate(jobs):
        if not isinstance(job, GraphJob):  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
            raise InvalidOption(f"jobs[{index}]", job, "must be a GraphJob, e.g. GraphJob('total', 'reports')")
    refs = Counter(job.ref for job in jobs)
    for job in jobs:
        check_options(job.options)
        encoded(f"{job.ref}.data", job.data)
        if refs[job.ref] > 1:
            raise InvalidOption("ref", job.ref, "must be given once only")
        for ref in job.depends_on:
            if ref not in refs:
                raise InvalidOption("depends_on", ref, "must be the ref of a job of the same flow")
    _check_cycles({job.ref: set(job.depends_on) for job in jobs})


def _check_cycles(waiting: dict[str, set[str]]) -> None:
    while waiting:
        free = [ref for ref, others in waiting.items() if not others & waiting.keys()]
        if not free:
            raise InvalidOption("depends_on", sorted(waiting), "must not form a cycle")
        for ref in free:
            del waiting[ref]
