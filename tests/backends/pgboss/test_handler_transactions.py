"""A handler's writes and its job's completion in one transaction: both commit, or neither."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import psycopg
import pytest

from awaiting import eventually
from jobwire import State
from jobwire.errors import WrongState
from jobwire.options import NewJob


@pytest.fixture
def finished(queue):
    """Await the end of a job: its snapshot once it is in a final state."""

    async def wait(job_id):
        async def look():
            job = await queue.get(job_id)
            return job if job.state.finished else None

        return await eventually(look)

    return wait


class Ledger:
    """A table of the application's own, beside the queue."""

    def __init__(self, database, schema):
        self._database = database
        self.insert = f"INSERT INTO {schema}.ledger VALUES (%s)"

    async def entries(self):
        found = await (await self._database.execute("SELECT n FROM ledger ORDER BY n")).fetchall()
        return [row["n"] for row in found]

    async def change(self, statement):
        await self._database.execute(statement)


@pytest.fixture
async def ledger(queue, database, unique):
    await database.execute("CREATE TABLE ledger (n integer)")
    return Ledger(database, unique)


async def test_a_handlers_writes_commit_with_its_completion(queue, work, ledger):
    async def handler(job):
        connection = await job.transaction()
        await connection.execute(ledger.insert, [job.data])
        assert await ledger.entries() == []
        return "written"

    added = await queue.add(7)
    async with work(handler):
        assert await added.wait(timeout=20) == "written"
    assert await ledger.entries() == [7]


async def test_a_failed_handlers_writes_are_rolled_back(queue, work, ledger):
    runs = []

    async def handler(job):
        connection = await job.transaction()
        await connection.execute(ledger.insert, [job.data])
        runs.append(job.id)
        if len(runs) == 1:
            raise RuntimeError("half way")

    added = await queue.add(7, attempts=2)
    async with work(handler):
        await added.wait(timeout=20)
    assert len(runs) == 2
    assert await ledger.entries() == [7]


async def test_the_writes_of_a_claim_that_was_lost_are_rolled_back(queue, work, ledger, rows):
    """Effectively once: whoever runs the job meanwhile commits its own writes, and ours are gone."""
    runs = []

    async def handler(job):
        connection = await job.transaction()
        await connection.execute(ledger.insert, [len(runs)])
        runs.append(job.id)
        if len(runs) == 1:
            await rows("UPDATE job SET state = 'retry' WHERE id = %s RETURNING 1", job.id)
        return len(runs)

    added = await queue.add({})
    async with work(handler) as worker:
        assert await added.wait(timeout=20) == 2
    assert (worker.stats.lost, worker.stats.completed) == (1, 1)
    assert await ledger.entries() == [1]


async def test_many_handlers_with_connections_run_beside_others(queue, work, ledger):
    async def handler(job):
        if job.data % 2:
            connection = await job.transaction()
            await connection.execute(ledger.insert, [job.data])

    await queue.add_many([NewJob(n) for n in range(40)])
    async with work(handler, concurrency=8) as worker:
        await eventually(lambda: worker.stats.completed == 40)
    assert await ledger.entries() == list(range(1, 40, 2))


async def test_a_plain_function_writes_on_a_blocking_connection(queue, work, ledger):
    def handler(job):
        connection = job.transaction()
        assert connection is job.transaction()
        connection.execute(ledger.insert, [job.data])
        if job.attempts_made == 0:
            raise RuntimeError("half way")
        return threading.current_thread() is not threading.main_thread()

    added = await queue.add(7, attempts=2)
    async with work(handler):
        assert await added.wait(timeout=20) is True
    assert await ledger.entries() == [7]


async def test_threads_and_their_connections_serve_one_job_after_the_other(queue, work, ledger, rows):
    def handler(job):
        job.transaction().execute(ledger.insert, [job.data])

    await queue.add_many([NewJob(n) for n in range(30)])
    async with work(handler, concurrency=3) as worker:
        await eventually(lambda: worker.stats.completed == 30)
    assert await ledger.entries() == list(range(30))


async def test_a_thread_that_outlives_its_job_can_write_no_more(queue, work, ledger):
    """Nor can what it says end up in the transaction of the job after it."""
    abandoned, go_on, ends = threading.Event(), threading.Event(), []

    def handler(job):
        connection = job.transaction()
        if job.attempts_made == 0:
            connection.execute(ledger.insert, [1])
            abandoned.set()
            go_on.wait(20)
            try:
                connection.execute(ledger.insert, [2])
            except psycopg.OperationalError as error:
                ends.append(error)
            return
        connection.execute(ledger.insert, [3])

    added = await queue.add({}, attempts=2)
    async with work(handler, timeout=1.5):
        await added.wait(timeout=20)
        assert abandoned.is_set()
        go_on.set()
        await eventually(lambda: ends)
    assert await ledger.entries() == [3]


async def test_a_statement_under_way_is_cut_off_when_the_job_times_out(queue, work, rows):
    ends = []

    def handler(job):
        try:
            job.transaction().execute("SELECT pg_sleep(60)")
        except psycopg.OperationalError as error:
            ends.append(error)
            raise

    added = await queue.add({})
    async with work(handler, timeout=0.3):
        await eventually(lambda: ends)
        await eventually(lambda: _in_state(queue, added.id, State.FAILED))


async def _in_state(queue, job_id, state):
    return (await queue.get(job_id)).state is state


async def test_a_thread_that_asks_after_its_job_has_ended_gets_no_connection(queue, work):
    go_on, ends = threading.Event(), []

    def handler(job):
        go_on.wait(20)
        try:
            job.transaction()
        except Exception as error:
            ends.append(type(error).__name__)

    added = await queue.add({})
    async with work(handler, timeout=0.1):
        await eventually(lambda: _in_state(queue, added.id, State.FAILED))
        go_on.set()
        await eventually(lambda: ends)
    assert ends == ["LostLock"]


@pytest.mark.parametrize("action", ["commit", "rollback", "close", "__aenter__"])
async def test_a_handler_can_t_end_the_transaction_itself(queue, work, finished, ledger, action):
    async def handler(job):
        connection = await job.transaction()
        await connection.execute(ledger.insert, [1])
        with pytest.raises(WrongState, match="return to commit, raise to roll back"):
            await getattr(connection, action)()
        assert await ledger.entries() == []

    added = await queue.add({})
    async with work(handler):
        assert (await finished(added.id)).state is State.COMPLETED
    assert await ledger.entries() == [1]


@pytest.mark.parametrize("action", ["commit", "rollback", "close", "__enter__"])
async def test_nor_can_a_plain_function(queue, work, finished, ledger, action):
    def handler(job):
        connection = job.transaction()
        connection.execute(ledger.insert, [1])
        with pytest.raises(WrongState, match="return to commit, raise to roll back"):
            getattr(connection, action)()

    added = await queue.add({})
    async with work(handler):
        assert (await finished(added.id)).state is State.COMPLETED
    assert await ledger.entries() == [1]


async def test_a_transaction_block_of_the_driver_is_a_savepoint_inside(queue, work, finished, ledger):
    async def handler(job):
        connection = await job.transaction()
        async with connection.transaction():
            await connection.execute(ledger.insert, [1])
        with contextlib.suppress(psycopg.errors.DivisionByZero):
            async with connection.transaction():
                await connection.execute(ledger.insert, [2])
                await connection.execute("SELECT 1/0")
        assert await ledger.entries() == []

    added = await queue.add({})
    async with work(handler):
        assert (await finished(added.id)).state is State.COMPLETED
    assert await ledger.entries() == [1]


async def test_a_job_whose_writes_can_t_be_committed_fails_and_is_not_completed_without_them(
    queue, work, finished, ledger
):
    await ledger.change("ALTER TABLE ledger ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED")
    await ledger.change("INSERT INTO ledger VALUES (7)")

    async def handler(job):
        await (await job.transaction()).execute(ledger.insert, [7])

    added = await queue.add({})
    async with work(handler):
        job = await finished(added.id)
    assert (job.state, "could not be committed" in job.error) == (State.FAILED, True), job
    assert await ledger.entries() == [7]


async def test_a_job_whose_connection_broke_runs_again_uncharged(queue, work, finished, ledger, rows):
    async def handler(job):
        connection = await job.transaction()
        await connection.execute(ledger.insert, [len(runs)])
        runs.append(job.attempts_made)
        if len(runs) == 1:
            await rows("SELECT pg_terminate_backend(%s)", connection.info.backend_pid)

    runs: list[int] = []
    added = await queue.add({}, attempts=1)
    async with work(handler) as worker:
        job = await finished(added.id)
    assert (job.state, len(runs), worker.stats.completed) == (State.COMPLETED, 2, 1)
    assert await ledger.entries() == [1]


@pytest.fixture
async def slow_commit(ledger):
    """Commits that hold an entry of 0 take longer than a worker's patience in these tests."""
    await ledger.change(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.n = 0 THEN PERFORM pg_sleep(4); END IF; RETURN NULL; END $$"
    )
    await ledger.change(
        "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON ledger DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION dawdle()"
    )


@pytest.mark.usefixtures("slow_commit")
async def test_a_commit_that_lands_after_the_worker_gave_up_on_it_counts(queue, work, finished, ledger):
    runs: list[str] = []

    def handler(job):
        runs.append(job.id)
        job.transaction().execute(ledger.insert, [len(runs) - 1])

    added = await queue.add({})
    async with work(handler, call_timeout=1.2) as worker:
        assert (await finished(added.id)).state is State.COMPLETED
        await eventually(lambda: worker.stats.lost)
    assert (len(runs), await ledger.entries()) == (1, [0])


@pytest.mark.usefixtures("slow_commit")
async def test_a_job_whose_commit_never_landed_is_not_completed_without_its_writes(queue, work, finished, ledger):
    """The driver of a coroutine cancels the statement when it is given up."""
    runs: list[str] = []

    async def handler(job):
        runs.append(job.id)
        await (await job.transaction()).execute(ledger.insert, [len(runs) - 1])

    added = await queue.add({})
    async with work(handler, call_timeout=1.2):
        assert (await finished(added.id)).state is State.COMPLETED
    assert (len(runs), await ledger.entries()) == (2, [1])


async def test_asking_twice_at_once_gives_the_same_connection(queue, work, finished):
    async def handler(job):
        one, other = await asyncio.gather(job.transaction(), job.transaction())
        return one is other

    added = await queue.add({})
    async with work(handler):
        assert (await finished(added.id)).result is True


def ask_for_a_connection(job):
    job.transaction()


async def test_a_handler_in_a_process_is_told_that_no_connection_reaches_it(queue, work, finished):
    added = await queue.add({})
    async with work(ask_for_a_connection, executor="process"):
        job = await finished(added.id)
    assert (job.state, "stays in the worker's process" in job.error) == (State.FAILED, True), job.error
