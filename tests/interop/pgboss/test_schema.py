"""The schema that jobwire makes is the one that Node makes."""

from __future__ import annotations

import pytest

from jobwire.backends.pgboss import install

from .node import NodeBoss

CATALOG = {
    "columns": """
        SELECT c.relname, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull,
               pg_get_expr(d.adbin, d.adrelid) AS "default"
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1, 3""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = %s ORDER BY 1, 2",
    "constraints": """
        SELECT conrelid::regclass::text AS "table", conname, contype, pg_get_constraintdef(oid) AS definition,
               condeferrable, condeferred
        FROM pg_constraint WHERE connamespace = %s::regnamespace AND conrelid <> 0 ORDER BY 1, 2""",
    "partitions": """
        SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bound, pg_get_partkeydef(c.oid) AS key
        FROM pg_class c WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1""",
    "functions": """
        SELECT proname, pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result, provolatile
        FROM pg_proc WHERE pronamespace = %s::regnamespace ORDER BY 1""",
    "enums": """
        SELECT t.typname, array_agg(e.enumlabel::text ORDER BY e.enumsortorder) AS labels
        FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid WHERE t.typnamespace = %s::regnamespace GROUP BY 1""",
}
QUEUES = [
    ("plain", {}),
    ("dead", {"policy": "short"}),
    ("all", {"policy": "exclusive", "retryLimit": 7, "retryDelay": 3, "retryBackoff": True, "retryDelayMax": 60,
             "expireInSeconds": 11, "retentionSeconds": 12, "deleteAfterSeconds": 13, "warningQueueSize": 14,
             "deadLetter": "dead", "heartbeatSeconds": 15, "notify": True}),
    *((f"own-{policy}", {"policy": policy, "partition": True})
      for policy in ("standard", "short", "singleton", "stately", "exclusive", "key_strict_fifo")),
]  # fmt: skip


async def catalog(rows, schema: str) -> dict:
    found = {name: await rows(query, schema) for name, query in CATALOG.items()}
    return {name: [{k: _same(v, schema) for k, v in row.items()} for row in table] for name, table in found.items()}


def _same(value, schema):
    return value.replace(f"{schema}.", "") if isinstance(value, str) else value  # the search path hides one of them


async def both(node, peer, rows, jobwire_postgres, unique):
    """Two schemas with the same queues: Node's, and ours, in which Node called the same functions."""
    ours = f"{unique}_ours"
    assert await install(f"pgboss+{jobwire_postgres.url}?schema={ours}") is True
    guest = NodeBoss(peer, ours, migrate=False)
    for boss in (node, guest):
        for name, options in QUEUES:
            await boss.call("createQueue", name, options)
    return guest, ours


@pytest.mark.parametrize("part", CATALOG)
async def test_the_catalogs_are_equal(*, node, peer, rows, jobwire_postgres, unique, part):
    guest, ours = await both(node, peer, rows, jobwire_postgres, unique)
    theirs, made = await catalog(rows, unique), await catalog(rows, ours)
    assert made[part] == theirs[part]
    await guest.stop()


async def test_node_starts_without_a_migration_and_works(node, peer, rows, jobwire_postgres, unique):
    guest, ours = await both(node, peer, rows, jobwire_postgres, unique)
    job_id = await guest.call("send", "own-stately", {"n": 1}, {"singletonKey": "k"})
    [job] = await guest.call("fetch", "own-stately")
    assert job["id"] == job_id
    await guest.call("complete", "own-stately", job_id, {"done": True})
    assert (await rows(f"SELECT version FROM {ours}.version")) == [{"version": 46}]
    assert (await guest.call("getQueue", "all"))["deadLetter"] == "dead"
    await guest.call("deleteQueue", "own-stately")
    assert await guest.heard() == []
    await guest.stop()


async def test_the_rows_of_queues_are_equal(node, peer, rows, jobwire_postgres, unique):
    guest, ours = await both(node, peer, rows, jobwire_postgres, unique)
    query = "SELECT to_jsonb(q) - ARRAY['created_on', 'updated_on'] AS q FROM {}.queue q ORDER BY name"
    assert await rows(query.format(ours)) == await rows(query.format(unique))
    await guest.stop()


@pytest.mark.parametrize(
    ("command", "table"),
    [
        ("CREATE INDEX job_i99 ON s.job (name)", "job_common"),
        ("ALTER TABLE s.job ADD x int; ALTER TABLE s.job_common ADD y int; DROP INDEX s.job_i9, s.job_i10", "jabc"),
        ("SELECT 1 FROM s.job j, s.jobs, s.job_dependency", 'odd "name"'),
    ],
)
async def test_commands_for_job_tables_are_turned_alike(*, node, peer, rows, jobwire_postgres, unique, command, table):
    guest, ours = await both(node, peer, rows, jobwire_postgres, unique)
    answers = [
        (await rows(f"SELECT {schema}.job_table_format(%s, %s) AS text", command, table))[0]["text"]
        for schema in (ours, unique)
    ]
    assert answers[0] == answers[1]
    await guest.stop()


async def test_commands_are_queued_alike(node, peer, rows, jobwire_postgres, unique):
    guest, ours = await both(node, peer, rows, jobwire_postgres, unique)
    for schema in (ours, unique):
        for target in ("", ", 'job_common'", ", NULL, 'own-short'"):
            await rows(f"SELECT {schema}.job_table_run_async('a', 47, 'ALTER TABLE s.job ADD z int'{target})")
    query = "SELECT name, version, status, queue, table_name, command FROM {}.bam ORDER BY queue, table_name, command"
    assert await rows(query.format(ours)) == await rows(query.format(unique))
    await guest.stop()


async def test_installing_twice_changes_nothing(jobwire_postgres, unique, rows):
    url = f"pgboss+{jobwire_postgres.url}?schema={unique}"
    assert await install(url) is True
    assert await install(url) is False
    assert await rows("SELECT count(*) AS n FROM version") == [{"n": 1}]
