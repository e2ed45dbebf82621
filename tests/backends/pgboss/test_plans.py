"""Claiming and settling walk an index, however many jobs there are: no scan of the table, no sort of the backlog."""

from __future__ import annotations

import json
import uuid

import psycopg
import pytest

from jobwire import Queue, connect
from jobwire.backends.pgboss.connection.pipelined import _SETTINGS
from jobwire.backends.pgboss.work.fetch import FetchPlan
from jobwire.backends.pgboss.worker_options import WorkerOptions
from jobwire.options import NewJob

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("a million jobs")]  # made once, by one worker

JOBS = 1_000_000
ID = "6f1c2b9e-1f6e-4a53-9d0e-0a4d5c6b7a80"
FENCE = {
    "queue": "big",
    "ids": f"{{{ID}}}",
    "attempts": "{0}",
    "starts": "{2026-01-01}",
    "heartbeats": "{NULL}",
    "outputs": "[null]",
    "finals": "{false}",
    "waits": "{NULL}",
    "reserves": "{1}",
    "lease": "30",
    "own_channel": "channel",
    "mark": "$results",
}
FILL = """
    INSERT INTO {schema}.job_common (name, priority, data, policy, state, start_after, completed_on)
    SELECT 'big', i % 3, '{{}}', 'standard',
        (CASE WHEN i % 2 = 0 THEN 'created' WHEN i % 1000 = 1 THEN 'active' ELSE 'completed' END)::{schema}.job_state,
        now() + CASE WHEN i % 10 = 0 THEN interval '1 hour' ELSE '0' END,
        CASE WHEN i % 2 = 1 AND i % 1000 <> 1 THEN now() END
    FROM generate_series(1, {jobs}) i"""


@pytest.fixture(scope="module")
def big(jobwire_postgres):
    """A queue of a million jobs, half of them waiting, made by the database itself."""
    schema = f"plans_{uuid.uuid4().hex[:8]}"
    url = f"pgboss+{jobwire_postgres.url}?schema={schema}"
    with psycopg.connect(jobwire_postgres.url, autocommit=True) as connection:
        yield schema, url, connection
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
        connection.execute(f"DROP SCHEMA {schema}_jobwire CASCADE")


@pytest.fixture
async def backend(big):
    schema, url, database = big
    async with connect(url) as connection, Queue("big", connection):
        backend = connection.backend
        await backend.store.need_side()
        count = f"SELECT count(*) FROM {schema}.job_common"
        if not database.execute(count).fetchone()[0]:
            # The plans are made while the table is empty, as those of a worker that was there from the start.
            await _explain(backend, database, "fetch")
            indexes = database.execute(
                "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = %s AND tablename = 'job_common'"
                " AND indexname NOT LIKE '%%pkey'", [schema],
            ).fetchall()  # fmt: skip
            # Building the indexes afterwards is several times quicker than keeping them up row by row.
            for name, _ in indexes:
                database.execute(f"DROP INDEX {schema}.{name}")
            database.execute(f"ALTER TABLE {schema}.job_common DISABLE TRIGGER ALL")
            database.execute(FILL.format(schema=schema, jobs=JOBS))
            for _, definition in indexes:
                database.execute(definition)
            database.execute(f"ALTER TABLE {schema}.job_common ENABLE TRIGGER ALL")
        yield backend


async def _explain(backend, database, name, analyzed=False):
    queue = await backend.queues.find("big")
    if name == "fetch":
        statement = FetchPlan.of(queue, WorkerOptions(), backend.store).statement
        values = {"queue": "big", "count": "100", "lease": "30"}
    else:
        statement = backend.store.statements.get(name, queue.table)
        values = FENCE
    listed = ", ".join("'" + values[one].replace("'", "''") + "'" for one in statement.values)
    database.execute(_SETTINGS)
    prepared = f"{name}_plan"
    if not database.execute("SELECT 1 FROM pg_prepared_statements WHERE name = %s", [prepared]).fetchone():
        database.execute(f"PREPARE {prepared} AS {statement.text.decode()}")
    with database.transaction(force_rollback=True):
        how = "ANALYZE, BUFFERS, FORMAT JSON" if analyzed else "FORMAT JSON"
        [[plan]] = database.execute(f"EXPLAIN ({how}) EXECUTE {prepared}({listed})").fetchall()
    return plan[0] if isinstance(plan, list) else json.loads(plan)[0]


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("statement", ["fetch", "complete", "fail_or_retry", "release_or_snooze", "extend", "next_due"])
@pytest.mark.parametrize("analyzed", [False, True], ids=["without statistics", "with statistics"])
async def test_the_plan_walks_indexes(big, backend, statement, analyzed):
    schema, _, database = big
    if analyzed:
        database.execute(f"ANALYZE {schema}.job_common")
    plan = await _explain(backend, database, statement, analyzed=True)
    found = list(nodes(plan["Plan"]))
    kinds = {node["Node Type"] for node in found}
    assert not kinds & {"Seq Scan", "Sort", "Incremental Sort", "Bitmap Heap Scan"}, kinds
    touched = sum(
        node.get("Actual Rows", 0) * node.get("Actual Loops", 1) for node in found if "Index" in node["Node Type"]
    )
    removed = sum(node.get("Rows Removed by Filter", 0) for node in found)
    assert touched + removed <= 2_000, (touched, removed)
    if statement == "fetch":
        assert "job_common_i11" in {node.get("Index Name") for node in found}
    if statement in ("complete", "fail_or_retry", "release_or_snooze", "extend"):
        assert "job_common_pkey" in {node.get("Index Name") for node in found}
    assert plan["Execution Time"] < 500


@pytest.mark.parametrize("statement", ["fail_dependents", "unblock"])
async def test_jobs_that_wait_for_others_are_found_without_reading_the_rest(big, backend, statement):
    _, _, database = big
    plan = await _explain(backend, database, statement, analyzed=True)
    of_jobs = [node for node in nodes(plan["Plan"]) if node.get("Relation Name") == "job_common"]
    assert of_jobs
    assert {node["Node Type"] for node in of_jobs} <= {"Index Scan", "Index Only Scan"}
    assert sum(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in of_jobs) == 0


@pytest.mark.parametrize("jobs", [2_000, 5_000])
async def test_a_small_table_without_statistics_is_walked_by_its_primary_key_too(jobwire_postgres, unique, jobs):
    """The planner takes a queue's name to be rare until it has counted: left alone it reads the whole queue."""
    url = f"pgboss+{jobwire_postgres.url}?schema={unique}"
    async with connect(url) as connection, Queue("big", connection) as queue:
        await connection.backend.store.need_side()
        with psycopg.connect(jobwire_postgres.url, autocommit=True) as database:
            database.execute(f"ALTER TABLE {unique}.job_common SET (autovacuum_enabled = off)")
            await queue.add_many([NewJob(n) for n in range(jobs)])
            for statement in ("fetch", "complete", "fail_or_retry", "release_or_snooze", "extend"):
                plan = await _explain(connection.backend, database, statement, analyzed=True)
                found = list(nodes(plan["Plan"]))
                removed = sum(node.get("Rows Removed by Filter", 0) for node in found)
                used = {node.get("Index Name") for node in found}
                assert removed == 0, (statement, used)
                assert ("job_common_i11" if statement == "fetch" else "job_common_pkey") in used


async def test_plans_are_made_anew_as_tables_grow(queue, consume, monkeypatch):
    from jobwire.backends.pgboss.connection import pipelined
    from jobwire.backends.pgboss.connection.statements import statement

    monkeypatch.setattr(pipelined, "_PLAN_FOR", 0.0)
    consumer = consume()
    await queue.add_many([NewJob(n) for n in range(20)])
    seen = []
    while claims := (await consumer.settle([], claim=3)).claims:
        seen += [claim.job.data for claim in claims]
    assert seen == list(range(20))
    async with queue.connection.backend.store.connection() as connection:
        count = statement("prepared", "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'jobwire_fetch%'")
        [[(kept,)]] = await connection.run([(count, {})])
    assert kept <= 1
