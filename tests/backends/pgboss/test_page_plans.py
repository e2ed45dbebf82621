"""A page of a long queue is read by an index in its order, wherever it is: what comes before it is not read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from jobwire import Connection, Queue, State
from jobwire.backends.pgboss.connection.pipelined import _SETTINGS, Value
from jobwire.boundary import Turnover

JOBS = 20_000
LIMIT = 50
FILL = """
    INSERT INTO job_common (name, priority, policy, state, start_after, created_on, completed_on)
    SELECT %s, i %% 40, 'standard', state::job_state, now() - interval '1 hour' + i * interval '1 millisecond' + delay,
        now() - interval '1 hour' + i * interval '1 millisecond',
        CASE WHEN state <> 'created' THEN now() - interval '1 hour' + i * interval '1 millisecond' END
    FROM generate_series(1, %s) i, LATERAL (
        SELECT (ARRAY['created', 'created', 'completed', 'cancelled', 'failed'])[1 + i %% 5] AS state,
            CASE i %% 5 WHEN 0 THEN interval '2 hours' ELSE interval '0' END AS delay
    ) s"""


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def rows_read(plan: Mapping[str, Any]) -> int:
    """The rows that were read from indexes, also those that did not belong to the page."""
    read = 0
    for node in nodes(plan):
        if "Scan" in node["Node Type"] and "Index Name" in node:
            read += (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return round(read)


class Looks:
    """The last statement with which a backend has read jobs."""

    def __init__(self, connection: Connection, monkeypatch: pytest.MonkeyPatch, method: str = "look") -> None:
        self._store: Any = connection.backend.store  # type: ignore[attr-defined]
        self._last: tuple[Any, Mapping[str, Value]] | None = None
        self._look: Callable[..., Any] = getattr(self._store, method)
        monkeypatch.setattr(self._store, method, self._recorded)

    async def _recorded(
        self, name: str, values: Mapping[str, Value], *, table: str = "job", features: Sequence[str] = ()
    ) -> Sequence[Any]:
        self._last = self._store.statements.get(name, table, self._store.features(*features)), values
        return await self._look(name, values, table=table, features=features)

    async def plan(self, database: psycopg.AsyncConnection[Any]) -> Mapping[str, Any]:
        """Runs the statement again, with the settings of the backend, and returns its plan with what was counted."""
        assert self._last is not None
        statement, values = self._last
        given = ", ".join("'" + (values[name] or b"").decode() + "'" for name in statement.values)
        await database.execute(_SETTINGS)
        await database.execute(b"PREPARE page AS " + statement.text)
        found = await database.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE page({given})")
        await database.execute("DEALLOCATE page")
        row = await found.fetchone()
        assert row is not None
        return row["QUERY PLAN"][0]["Plan"]


@pytest.fixture
def looks(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(connection, monkeypatch)


@pytest.mark.parametrize("state", [State.WAITING, State.DELAYED, State.COMPLETED, State.CANCELLED, State.FAILED])
async def test_a_page_after_many_others_is_found_by_an_index(
    queue: Queue, database: psycopg.AsyncConnection[Any], looks: Looks, state: State
) -> None:
    database.prepare_threshold = None
    await database.execute("ALTER TABLE job_common DISABLE TRIGGER ALL")
    await database.execute(FILL, [queue.name, JOBS])
    for reverse in (False,) if state is State.FAILED else (False, True):
        far = await queue.jobs(state, limit=LIMIT, skip=JOBS // 10, reverse=reverse)
        page = await queue.jobs(state, limit=LIMIT, cursor=far.cursor, reverse=reverse)
        assert (len(far), len(page), len({job.id for job in [*far, *page]})) == (LIMIT, LIMIT, 2 * LIMIT)

        plan = await looks.plan(database)

        assert rows_read(plan) < 20 * LIMIT, plan


async def test_failed_jobs_older_than_many_others_are_found(
    queue: Queue, database: psycopg.AsyncConnection[Any]
) -> None:
    """The newest finished jobs are looked through first. If they are not failed, all failed ones are read."""
    await database.execute("ALTER TABLE job_common DISABLE TRIGGER ALL")
    await database.execute(FILL, [queue.name, 25])
    await database.execute(
        "UPDATE job_common SET completed_on = completed_on - interval '1 day' WHERE state = 'failed'"
    )
    await database.execute("UPDATE job_common SET completed_on = NULL WHERE state = 'failed' AND priority = 4")
    await database.execute(FILL.replace("'failed'", "'completed'"), [queue.name, 50_500])

    first = await queue.jobs(State.FAILED, limit=2)
    second = await queue.jobs(State.FAILED, limit=2, cursor=first.cursor)
    third = await queue.jobs(State.FAILED, limit=2, cursor=second.cursor)

    assert [job.priority for page in (first, second, third) for job in page] == [24, 19, 14, 9, 4]


async def test_figures_read_no_more_jobs_than_they_count(
    queue: Queue, connection: Connection, database: psycopg.AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    database.prepare_threshold = None
    await database.execute("ALTER TABLE job_common DISABLE TRIGGER ALL")
    await database.execute(FILL, [queue.name, JOBS])
    backend: Any = connection.backend
    looks = Looks(connection, monkeypatch, "ask")

    reading = await backend.queue_list.figures([queue.name], LIMIT, datetime.now(UTC) - timedelta(days=1))
    plan = await looks.plan(database)

    [figures] = reading.queues
    some = (State.WAITING, State.DELAYED, State.FAILED)
    assert {state: figures.counts[state] for state in some} == dict.fromkeys(some, LIMIT)
    assert figures.more == {*some, State.COMPLETED, State.CANCELLED}
    assert figures.turnover == Turnover(10 * (LIMIT + 1), 170, 170)
    assert rows_read(plan) < 40 * LIMIT, plan
