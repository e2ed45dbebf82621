"""`app.testing()` replaces an app's store for a block."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from jobwire import (
    App,
    InvalidOption,
    NotSupported,
    Rate,
    State,
    Unrecoverable,
    WaitTimeout,
    WrongState,
)
from jobwire.testing import assert_added, perform
from tasks.shapes import Line, Order
from tasks.tested_app import (
    Pool,
    app,
    child,
    count_lines,
    open_pool,
    parent,
    seen,
    use_pool,
    use_shared_pool,
)

pytestmark = pytest.mark.usefixtures("nothing_seen")


async def test_jobs_of_a_block_are_added_and_run_in_memory():
    async with app.testing() as t:
        job = await count_lines.add(Order(1, [Line("a")]))
        assert (await count_lines.get(job.id)).state is State.WAITING
        ran = await t.run()
        assert (ran.completed, ran.failed) == (1, 0)
        assert await job.wait(timeout=5) == 1
        assert [(one.id, one.state, one.result) for one in t.added(count_lines)] == [(job.id, State.COMPLETED, 1)]


async def test_what_running_jobs_add_is_run_too():
    async with app.testing() as t:
        await parent.add(3)
        assert (await t.run()).completed == 4
    assert sorted(seen) == [0, 1, 2]


@pytest.mark.parametrize("number", [1, 2])
async def test_each_block_begins_empty_in_an_event_loop_of_its_own(number):
    async with app.testing() as t:
        assert (await app.queue("child").counts())[State.WAITING] == 0
        await child.add(number)
        assert (await t.run(timeout=30)).completed == 1
    assert seen == [number]


async def test_the_app_has_its_own_store_again_afterwards(jobwire_url):
    own = App(jobwire_url)

    @own.task
    async def double(number: int) -> int:
        return number * 2

    async with own:
        before = await double.add(4)
        store = own.store
        with contextlib.suppress(LookupError):
            async with own.testing():
                inside = await double.options(id="inside").add(5)
                assert await double.get(before.id) is None
                raise LookupError
        assert own.store is store
        assert await double.get(inside.id) is None
        async with own.worker():
            assert await before.wait(timeout=30) == 8


async def test_an_app_that_is_opened_and_closed_inside_keeps_the_blocks_jobs():
    async with app.testing() as t:
        async with app:
            await child.add(1)
        async with app:
            await child.add(2)
        assert len(t.added(child)) == 2
        assert (await t.run()).completed == 2


async def test_blocks_can_be_inside_each_other():
    async with app.testing() as outer:
        await child.add(1)
        async with app.testing(eager=True) as inner:
            await child.add(2)
            assert len(inner.added(child)) == 1
        assert len(outer.added(child)) == 1
    assert seen == [2]


async def test_a_block_begins_once():
    t = app.testing()
    async with t:
        with pytest.raises(WrongState, match="has begun already"):
            await t.__aenter__()
    with pytest.raises(WrongState, match="has ended"):
        t.added(child)


@pytest.mark.parametrize(
    ("url", "option"),
    [("bullmq+redis://127.0.0.1:1", {"expires": 5}), ("pgboss+postgresql://127.0.0.1:1/db", {"lifo": True})],
)
async def test_a_block_refuses_what_the_apps_protocol_refuses(url, option):
    own = App(url)

    @own.task
    async def one(n: int) -> None: ...

    with pytest.raises(NotSupported) as outside:
        await one.options(**option).add(1)
    async with own.testing():
        with pytest.raises(NotSupported) as inside:
            await one.options(**option).add(1)
    assert str(inside.value) == str(outside.value)


@pytest.mark.parametrize(
    "url",
    ["bullmq+redis://127.0.0.1:1", "bridgemq+redis://127.0.0.1:1", "pgboss+postgresql://127.0.0.1:1/db",
     "monque+mongodb://127.0.0.1:1/db", "memory:"],
    ids=lambda url: url.partition(":")[0],
)  # fmt: skip
async def test_tasks_of_every_protocol_are_tested_without_their_store(url):
    own = App(url)

    @own.task(queue="numbers")
    async def double(number: int) -> int:
        return number * 2

    assert await perform(double.s(4), job_id="own-id") == 8
    async with own.testing() as t:
        job = await double.add(5)
        await t.run()
        assert await job.wait(timeout=5) == 10
        assert_added(double, count=1, number=5)
    async with own.testing(eager=True):
        assert (await double.add(6)).result == 12
        assert_added(double, number=6)


async def test_jobs_of_other_names_in_the_queue_are_not_the_tasks():
    async with app.testing() as t:
        await app.queue("child").add({"n": 1}, name="other")
        assert_added(child, count=0)
        assert t.added(child) == []


async def test_an_eager_job_may_outlast_its_lease():
    own = App("memory:")

    @own.task
    async def advance() -> int:
        t.clock.advance(3600)
        return 7

    async with own.testing(eager=True) as t:
        job = await advance.add()
        assert (job.state, job.result) == (State.COMPLETED, 7)


async def test_a_timeout_of_the_lifespan_is_its_own():
    @contextlib.asynccontextmanager
    async def lifespan(own: App) -> AsyncIterator[None]:
        raise TimeoutError("no answer")
        yield

    own = App("memory:", lifespan=lifespan)
    own.task(child.function)
    async with own.testing() as t:
        with pytest.raises(TimeoutError, match="no answer"):
            await t.run(timeout=30)


async def test_options_of_a_block_are_checked():
    with pytest.raises(InvalidOption, match="eager: must be True or False"):
        app.testing(eager=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"overrides\[open_pool\]: must be a function that returns the value"):
        app.testing(overrides={open_pool: Pool("fake")})  # type: ignore[dict-item]
    with pytest.raises(InvalidOption, match="needs a default for name"):
        app.testing(overrides={open_pool: Pool})


async def test_overrides_hold_for_workers_and_for_perform_inside_of_a_block():
    async with app.testing(overrides={open_pool: lambda: Pool("other")}) as t:
        jobs = [await use_pool.add(), await use_shared_pool.add()]
        await t.run()
        assert [await job.wait(timeout=5) for job in jobs] == ["other", "other"]
        assert await perform(use_pool) == "other"
    with pytest.raises(ConnectionError, match="the real pool"):
        await perform(use_pool)


async def test_the_lifespan_surrounds_each_run():
    @contextlib.asynccontextmanager
    async def lifespan(own: App) -> AsyncIterator[None]:
        seen.append("begins")
        own.state.name = "state"
        yield
        seen.append("ends")

    own = App("memory:", lifespan=lifespan)

    @own.task
    async def use() -> None:
        seen.append(own.state.name)

    async with own.testing() as t:
        await use.add()
        await t.run()
        assert seen == ["begins", "state", "ends"]
    seen.clear()
    async with own.testing(eager=True):
        assert seen == ["begins"]
        await use.add()
        await use.add()
    assert seen == ["begins", "state", "state", "ends"]


async def test_a_lifespan_that_fails_ends_the_run_with_its_error():
    @contextlib.asynccontextmanager
    async def lifespan(own: App) -> AsyncIterator[None]:
        raise LookupError("no pool")
        yield

    own = App("memory:", lifespan=lifespan)

    @own.task
    async def use() -> None: ...

    async with own.testing() as t:
        await use.add()
        with pytest.raises(LookupError, match="no pool"):
            await t.run()
    before = own.store
    with pytest.raises(LookupError, match="no pool"):
        async with own.testing(eager=True):
            pass
    assert own.store is before


async def test_a_run_that_takes_too_long_ends_with_an_error():
    own = App("memory:")

    @own.task
    async def forever() -> None:
        await asyncio.Event().wait()

    async with own.testing() as t:
        await forever.add()
        with pytest.raises(WaitTimeout, match=r"still jobs after 0\.1 s"):
            await t.run(timeout=0.1)


async def test_rates_do_not_slow_tests_down():
    own = App("memory:")

    @own.task(rate=Rate(1, per=3600))
    async def rare(n: int) -> None: ...

    async with own.testing() as t:
        await rare.add_many([{"n": n} for n in range(3)])
        assert (await t.run(timeout=30)).completed == 3


async def test_hooks_of_failures_are_called_in_both_modes():
    own = App("memory:")
    own.on_failed(lambda job: seen.append(job.error))

    @own.task
    async def broken(text: str) -> None:
        raise Unrecoverable(text)

    async with own.testing() as t:
        await broken.add("one")
        assert (await t.run()).failed == 1
    async with own.testing(eager=True):
        with pytest.raises(Unrecoverable):
            await broken.add("two")
    assert seen == ["one", "two"]
