"""Stores jobs of which some wait for others, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jobwire.backends.pgboss.connection.pipelined import Call
from jobwire.backends.pgboss.connection.statements import BEGIN, COMMIT, ROLLBACK
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import plain_list, text_list
from jobwire.backends.pgboss.produce.add import Adding
from jobwire.backends.pgboss.queues import Queues
from jobwire.errors import NotSupported
from jobwire.model import JobKey


class Edge(NamedTuple):
    """A job that waits, and one that it waits for. pg-boss calls them child and parent."""

    waiting: JobKey
    first: JobKey


def check_schema(store: Store) -> None:
    """Raises NotSupported if the schema has no dependencies between jobs."""
    if not store.layout.has("job_dependency"):
        raise NotSupported("pgboss", "flows before schema 31")


async def store_graph(
    store: Store,
    queues: Queues,
    adding: Adding,
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    edges: Sequence[Edge],
) -> set[str]:
    """Stores the rows of each queue and the edges, all or nothing. Returns the ids of the jobs that a queue did not
    admit. If there are any, nothing has been stored."""
    tables = {name: await queues.get(name) for name in rows}
    inserts: list[Call] = [adding.call(tables[name], own) for name, own in rows.items()]
    depend: Call = (
        store.statements.get("depend"),
        {
            "child_names": text_list([edge.waiting.queue for edge in edges]),
            "child_ids": plain_list([edge.waiting.id for edge in edges]),
            "parent_names": text_list([edge.first.queue for edge in edges]),
            "parent_ids": plain_list([edge.first.id for edge in edges]),
        },
    )
    async with store.connection() as connection:
        answers = await connection.run([(BEGIN, {}), *inserts, depend])
        there = {row[0] for answer in answers[1:-1] for row in answer}
        left_out = {row["id"] for own in rows.values() for row in own if row["id"].lower() not in there}
        await connection.run([(ROLLBACK if left_out else COMMIT, {})])
    return left_out
