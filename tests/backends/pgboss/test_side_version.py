"""The version of the side data: a row in the schema beside pg-boss's."""

from __future__ import annotations

import asyncio

import pytest

from jobwire import NewerSideData, Queue, StoreRefused, Worker, connect
from jobwire.backends.pgboss.connection import side_version


@pytest.fixture
def side(unique):
    return f"{unique}_jobwire"


@pytest.fixture
async def version(rows, side):
    async def read():
        return [row["version"] for row in await rows(f"SELECT version FROM {side}.version")]

    return read


@pytest.fixture
async def made(url):
    """Side data of this release, made and left."""
    async with Queue("letters", url) as queue:
        await queue.admin.pause()


@pytest.fixture
async def poor_url(made, jobwire_postgres, unique, side, database):
    """Side data without a version, for a role that may use its tables and create none."""
    await database.execute(f"DROP TABLE {side}.version")
    role = f"poor_{unique}"
    await database.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'poor'")
    for schema in (unique, side):
        await database.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        await database.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}")
        await database.execute(f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role}")
    yield f"pgboss+postgresql://{role}:poor@{jobwire_postgres.url.partition('@')[2]}?schema={unique}"
    await database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_new_side_data_is_of_version_1(made, version):
    assert await version() == [1]


async def test_a_newer_version_is_refused_when_it_is_opened_and_nothing_is_written(made, url, side, database, rows):
    await database.execute(f"UPDATE {side}.version SET version = 7")
    changes = f"SELECT xmin::text, * FROM {side}.version"
    tables = "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace ORDER BY 1"
    before = await rows(changes), await rows(tables, side)
    with pytest.raises(NewerSideData, match=rf'schema "{side}" .* of version 7; .* up to 1: upgrade jobwire here'):
        await connect(url, wait_for_store=60).open()
    with pytest.raises(NewerSideData):
        await Worker("letters", print, url, wait_for_store=60).run(signals=False)
    assert (await rows(changes), await rows(tables, side)) == before


async def test_a_newer_version_that_appears_later_is_refused_when_it_is_first_used(queue, connection, database, side):
    added = await queue.add(1)
    await _other_release(database, side)
    for use in (queue.admin.pause(), queue.admin.paused(), queue.get(added.id)):
        with pytest.raises(NewerSideData):
            await use
    assert (await queue.add(2)).id, "what needs no side data goes on"
    async with asyncio.timeout(30):
        with pytest.raises(NewerSideData):
            await Worker("letters", print, connection).run(signals=False)


async def test_a_second_connection_of_one_that_is_open_does_not_check(queue, connection, database, side):
    """It renews the leases of jobs that run; a refusal would lose them."""
    await queue.admin.pause()
    await queue.admin.resume()
    await database.execute(f"UPDATE {side}.version SET version = 7")
    twin = connection.backend.twin()
    await twin.open()
    assert twin.store.has_side
    await twin.close()


async def test_side_data_without_a_version_is_adopted(made, url, side, database, version):
    await database.execute(f"DROP TABLE {side}.version")
    async with Queue("letters", url) as queue:
        assert await queue.admin.paused()
    assert await version() == [1]


@pytest.mark.usefixtures("made")
async def test_a_role_that_may_not_write_the_version_works_without(poor_url, url, side, database):
    async with Queue("letters", poor_url) as queue:
        assert await queue.admin.paused()
    async with Queue("letters", url):  # adopted by a role that may
        pass
    async with Queue("letters", poor_url) as queue:
        assert await queue.admin.paused()
    await database.execute(f"UPDATE {side}.version SET version = 7")
    with pytest.raises(NewerSideData):
        await connect(poor_url).open()


async def test_openers_at_once_make_adopt_and_stamp_once(url, side, database, version):
    connections = [await connect(url).open() for _ in range(4)]
    queues = [await Queue("letters", one).__aenter__() for one in connections]
    await asyncio.gather(*(queue.admin.pause() for queue in queues))
    assert await version() == [1]
    for one in connections:
        await one.close()
    await database.execute(f"DROP TABLE {side}.version")
    connections = await asyncio.gather(*(connect(url).open() for _ in range(4)))
    assert await version() == [1]
    for one in connections:
        await one.close()


@pytest.mark.usefixtures("made")
async def test_openers_at_once_take_a_step_exactly_once(url, side, database, rows, monkeypatch):
    await database.execute(f"CREATE TABLE {side}.taken (step int)")
    steps = [f"INSERT INTO {{side}}.taken VALUES ({n}); PERFORM pg_sleep(0.1);" for n in (2, 3)]
    monkeypatch.setattr(side_version, "STEPS", steps)
    connections = await asyncio.gather(*(connect(url).open() for _ in range(4)))
    assert await rows(f"SELECT version FROM {side}.version") == [{"version": 3}]
    assert await rows(f"SELECT step FROM {side}.taken") == [{"step": 2}, {"step": 3}]
    for one in connections:
        await one.close()
    monkeypatch.undo()
    with pytest.raises(NewerSideData, match="version 3"):
        await connect(url).open()


async def test_new_side_data_takes_all_steps(url, version, monkeypatch):
    monkeypatch.setattr(side_version, "STEPS", ["CREATE TABLE {side}.more (n int);"])
    async with Queue("letters", url) as queue:
        await queue.admin.pause()
        assert await version() == [2]


@pytest.mark.usefixtures("made")
async def test_a_step_that_fails_leaves_everything_as_it_was(url, side, version, rows, monkeypatch):
    monkeypatch.setattr(side_version, "STEPS", ["CREATE TABLE {side}.more (n int); PERFORM 1 / 0;"])
    with pytest.raises(StoreRefused, match="division by zero"):
        await connect(url).open()
    assert await version() == [1]
    assert await rows("SELECT to_regclass(%s) AS more", f"{side}.more") == [{"more": None}]


async def _other_release(database, side):
    """The side data as a newer release would make it."""
    await database.execute(f"CREATE SCHEMA {side}")
    await database.execute(f"CREATE TABLE {side}.log (name text)")
    await database.execute(f"CREATE TABLE {side}.version (version int)")
    await database.execute(f"INSERT INTO {side}.version VALUES (7)")
