"""Jobs that wait for the results of others, by pg-boss's dependencies.

pg-boss makes a job ready when all jobs that it waits for have completed. If one of them fails for good, pg-boss leaves
the job blocked. Jobs that are added here fail then: see `work/dependents.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobwire.backends.pgboss.codec import result_of
from jobwire.backends.pgboss.connection.rows import Unreadable
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import text
from jobwire.backends.pgboss.produce.add import Adding, row_of
from jobwire.backends.pgboss.produce.graph import Edge, check_schema, store_graph
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.uuid7 import new_ids
from jobwire.boundary import Added, FlowNode, levels
from jobwire.errors import StoreRefused
from jobwire.model import JobKey


class PgDependencies:
    """Implements Dependencies."""

    def __init__(self, store: Store, queues: Queues, adding: Adding) -> None:
        self._store = store
        self._queues = queues
        self._adding = adding

    def check_queues(self, queues: Sequence[str]) -> None:
        """Accepts any queues: all are in one schema."""

    async def add_trees(self, roots: Sequence[FlowNode]) -> Sequence[Added]:
        check_schema(self._store)
        nodes = levels(roots)
        ids = [node.job.new.id or made for node, made in zip(nodes, new_ids(len(nodes)), strict=True)]
        keys = {id(node): JobKey(node.queue, job_id.lower()) for node, job_id in zip(nodes, ids, strict=True)}
        below = {id(child) for node in nodes for child in node.children}
        rows: dict[str, list[dict[str, Any]]] = {}
        edges: list[Edge] = []
        for node in nodes:
            key, waits_for = keys[id(node)], len(node.children)
            row = row_of(node.job, key.id, (await self._queues.get(node.queue)).policy)
            row |= {"blocked": waits_for > 0, "pending": waits_for, "blocking": id(node) in below}
            rows.setdefault(node.queue, []).append(row)
            edges += [Edge(key, keys[id(child)]) for child in node.children]
        left_out = await store_graph(self._store, self._queues, self._adding, rows, edges)
        if left_out:
            queues = sorted({key.queue for key in keys.values() if key.id in left_out})
            raise StoreRefused(f"no job was added: one would break the policy of its queue ({', '.join(queues)})")
        return [Added(keys[id(node)].id) for node in nodes]

    async def results(self, queue: str, job_id: str) -> Mapping[JobKey, Any]:
        check_schema(self._store)
        rows = await self._store.ask("awaited_results", {"queue": text(queue), "id": text(job_id)})
        return {
            JobKey(name, first): result_of(output) for name, first, output in rows if not isinstance(output, Unreadable)
        }
