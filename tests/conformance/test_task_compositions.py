"""Chains, groups and chords of typed tasks. Where jobs can't wait for others, chains and chords are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jobwire import (
    ActiveJob,
    App,
    Connection,
    Feature,
    InvalidOption,
    JobFailed,
    Keep,
    NotSupported,
    State,
    WaitTimeout,
    by,
    chain,
    chord,
    context_of,
    current_job,
    group,
    previous,
)
from jobwire.tasks import Adding, CallNext
from tasks.shapes import Line, Order

from .conftest import QUEUE, with_attempts


@pytest.fixture
async def app(connection: Connection) -> AsyncIterator[App]:
    async with App(connection) as app:
        yield app


class Steps:
    """Tasks to compose. `runs` has the name and argument of each run."""

    def __init__(self, app: App, **options: Any) -> None:
        self.runs: list[tuple[str, Any]] = []
        self.failures = 0

        @app.task
        async def add_one(number: int) -> int:
            self.runs.append(("add_one", number))
            return number + 1

        @app.task
        async def times(number: int, by: int = 2) -> int:
            self.runs.append(("times", number))
            return number * by

        @app.task
        async def total(numbers: list[int]) -> int:
            self.runs.append(("total", numbers))
            return sum(numbers)

        @app.task(**options)
        async def fragile(number: int) -> int:
            self.runs.append(("fragile", number))
            if self.failures:
                self.failures -= 1
                raise ValueError("out of order")
            return number

        @app.task
        async def written(number: int) -> str:
            return f"number {number}"

        self.add_one, self.times, self.total, self.fragile, self.written = add_one, times, total, fragile, written


async def test_a_chain_gives_each_result_to_the_next_step(app, needs):
    steps = Steps(app)
    with needs(app, Feature.DEPENDENCIES):
        async with app.worker():
            job = await chain(steps.add_one.s(1), steps.times.s(by=10), steps.written.s(number=previous)).add()
            assert job.queue == "written"
            assert await job.wait(30) == "number 20"
        assert steps.runs == [("add_one", 1), ("times", 2)]
        read = await steps.written.get(job.id)
        assert (read.state, read.result) == (State.COMPLETED, "number 20")


async def test_a_step_that_has_all_arguments_only_waits(app, needs):
    steps = Steps(app)
    with needs(app, Feature.DEPENDENCIES):
        job = await chain(steps.add_one.s(1), steps.times.s(5, by=10)).add()
        assert (await steps.times.get(job.id)).state is State.WAITING_CHILDREN
        async with app.worker():
            assert await job.wait(30) == 50
        assert steps.runs == [("add_one", 1), ("times", 5)]


async def test_the_data_of_a_waiting_job_is_plain_json(app, needs):
    steps = Steps(app)
    with needs(app, Feature.DEPENDENCIES):
        job = await chain(steps.add_one.s(1), steps.times.s(by=10)).add()
        first = (await app.queue("add_one").jobs())[0]
        stored = await steps.times.get(job.id)
        assert stored.data == {"by": 10, "$results": {"number": {"queue": "add_one", "id": first.id}}}
        assert first.data == {"number": 1}


async def test_a_group_runs_on_every_protocol(app):
    steps = Steps(app)
    jobs = await group(steps.add_one.s(1), steps.times.s(4), steps.add_one.s(2)).add()
    assert [job.queue for job in jobs] == ["add_one", "times", "add_one"]
    assert len(jobs) == 3
    with pytest.raises(WaitTimeout):
        await jobs.wait(0.05)
    async with app.worker():
        assert await jobs.wait(30) == [2, 8, 3]
    assert await (await group().add()).wait(1) == []


@with_attempts(1)
async def test_the_wait_for_a_group_ends_with_the_first_failure(app, tries):
    steps = Steps(app)
    steps.failures = 1
    fragile = steps.fragile.options(**tries.job)
    jobs = await group(steps.add_one.s(1), fragile.s(2)).add()
    async with app.worker(["fragile"], **tries.worker):  # the other job is never run
        with pytest.raises(JobFailed):
            await jobs.wait(30)


async def test_a_chord_gives_the_results_of_a_group_to_one_call_in_order(app, needs):
    steps = Steps(app)
    with needs(app, Feature.DEPENDENCIES):
        async with app.worker(concurrency=7):
            job = await chord([steps.times.s(n) for n in range(20)], steps.total.s()).add()
            assert await job.wait(30) == 380
        assert steps.runs[-1] == ("total", [2 * n for n in range(20)])


async def test_compositions_nest(app, needs):
    steps = Steps(app)
    with needs(app, Feature.DEPENDENCIES):
        async with app.worker():
            inner = chord(group(steps.add_one.s(1), steps.add_one.s(2)), steps.total.s())
            both = group(chain(steps.add_one.s(1), steps.times.s()), inner, steps.add_one.s(9))
            jobs = await both.add()
            assert await jobs.wait(30) == [4, 5, 10]
            job = await chain(both, steps.total.s(), steps.written.s()).add()
            assert await job.wait(30) == "number 19"
            longer = chain(chain(steps.add_one.s(1), steps.add_one.s()), steps.add_one.s())
            assert await (await longer.add()).wait(30) == 4


async def test_a_chain_of_one_and_a_chord_of_none_need_no_waiting(app):
    steps = Steps(app)
    async with app.worker():
        assert await (await chain(steps.add_one.s(1)).add()).wait(30) == 2
        assert await (await chord([], steps.total.s()).add()).wait(30) == 0


@with_attempts(1)
@pytest.mark.parametrize("place", [0, 1])
async def test_a_failure_for_good_fails_the_steps_after_it(app, needs, tries, place):
    steps = Steps(app)
    steps.failures = 1
    with needs(app, Feature.DEPENDENCIES):
        calls = [steps.add_one.s, steps.times.s, steps.written.s]
        calls[place] = steps.fragile.options(**tries.job).s
        first, *others = calls
        async with app.worker(**tries.worker):
            job = await chain(first(1), *(call() for call in others)).add()
            with pytest.raises(JobFailed, match="failed"):
                await job.wait(30)
        assert [name for name, _ in steps.runs] == ["add_one", "fragile"][1 - place :]
        assert (await steps.written.get(job.id)).state is State.FAILED


@with_attempts(1)
async def test_one_failure_fails_the_call_of_a_chord(app, needs, tries):
    steps = Steps(app)
    steps.failures = 1
    with needs(app, Feature.DEPENDENCIES):
        fragile = steps.fragile.options(**tries.job)
        async with app.worker(**tries.worker):
            job = await chord([steps.add_one.s(1), fragile.s(2), steps.add_one.s(3)], steps.total.s()).add()
            with pytest.raises(JobFailed):
                await job.wait(30)
        assert "total" not in dict(steps.runs)


@with_attempts(3)
async def test_a_step_that_fails_and_succeeds_later_goes_on_once(app, needs, tries):
    steps = Steps(app)
    steps.failures = 2
    with needs(app, Feature.DEPENDENCIES):
        fragile = steps.fragile.options(**tries.job)
        async with app.worker(**tries.worker):
            job = await chain(steps.add_one.s(1), fragile.s(), steps.times.s(by=5)).add()
            assert await job.wait(30) == 10
        assert steps.runs == [("add_one", 1), *[("fragile", 2)] * 3, ("times", 2)]


@with_attempts(3)
async def test_a_later_step_has_its_arguments_in_every_attempt(app, needs, tries):
    steps = Steps(app)
    steps.failures = 2
    with needs(app, Feature.DEPENDENCIES):
        async with app.worker(**tries.worker):
            job = await chain(steps.add_one.s(1), steps.fragile.options(**tries.job).s()).add()
            assert await job.wait(30) == 2
        assert steps.runs == [("add_one", 1), *[("fragile", 2)] * 3]


async def test_a_step_whose_worker_dies_is_run_by_another_one(app, needs, consume, eventually):
    steps = Steps(app)

    @app.task(queue=QUEUE)
    async def middle(number: int) -> int:
        return number * 10

    with needs(app, Feature.DEPENDENCIES):
        async with app.worker(["add_one"]):
            job = await chain(steps.add_one.s(1), middle.s(), steps.written.s()).add()
            dead = consume(lease=0.3, recover_every=0.1)

            async def claimed() -> bool:
                return bool((await dead.settle([], claim=1)).claims)

            await eventually(claimed)
        async with app.worker(lease=30, recover_every=0.1):
            assert await job.wait(30) == "number 20"


async def test_a_running_task_may_add_a_chain(app, needs):
    steps = Steps(app)

    @app.task
    async def outer(number: int) -> str:
        return (await chain(steps.add_one.s(number), steps.times.s()).add()).id

    with needs(app, Feature.DEPENDENCIES):
        chain(steps.add_one.s(1), steps.times.s())
        async with app.worker():
            added = await (await outer.add(4)).wait(30)
            assert await steps.times.wait(added, 30) == 10


async def test_results_are_read_by_the_type_of_the_parameter(app, needs):
    @app.task
    async def make(order: int) -> Order:
        return Order(order, [Line("a", 2)])

    @app.task
    async def ship(order: Order) -> Line:
        assert isinstance(order, Order)
        assert isinstance(order.lines[0], Line)
        return order.lines[0]

    @app.task
    def note(line: Line, order: int) -> str:
        assert current_job().data == {"order": order, "line": {"sku": "a", "count": 2}}
        return f"{line.sku} × {line.count} of {order}"

    @app.task
    async def anything() -> Any:
        return {"id": "seven"}

    with needs(app, Feature.DEPENDENCIES):
        async with app.worker():
            job = await chain(make.s(7), ship.s(), note.s(order=7)).add()
            assert await job.wait(30) == "a × 2 of 7"
            job = await chain(anything.s(), ship.s()).add()
            with pytest.raises(JobFailed, match=r"task ship: data\.id: must be int, not str"):
                await job.wait(30)


async def test_a_result_that_is_not_there_fails_the_job(app, needs):
    steps = Steps(app)
    with needs(app, Feature.DEPENDENCIES):
        app.capabilities.require(Feature.DEPENDENCIES)
        source = {"queue": "add_one", "id": "6f1c2b9e-1f6e-4a53-9d0e-0a4d5c6b7a80"}
        gone = await app.queue("times").add({"$results": {"number": source}}, **_named(app, "times"))
        odd = await app.queue("times").add({"$results": {"number": 5}}, **_named(app, "times"))
        async with app.worker():
            with pytest.raises(JobFailed, match=r"data\.number: the result of job 6f1c.* is not in the store"):
                await steps.times.wait(gone.id, 30)
            with pytest.raises(JobFailed, match=r"data\.\$results: must be an object"):
                await steps.times.wait(odd.id, 30)


def _named(app: App, name: str) -> dict[str, str]:
    return {"name": name} if app.capabilities.has(Feature.JOB_NAMES) else {}


async def test_context_travels_with_each_step(connection, needs):
    seen: list[Any] = []

    class Tenant:
        def adding(self, new: Adding) -> None:
            new.context["tenant"] = f"north of {new.task}"

        async def running(self, job: ActiveJob, call_next: CallNext) -> Any:
            try:
                return await call_next(job)
            finally:
                seen.append(context_of(job)["tenant"])

    app = App(connection, middleware=[Tenant()])

    @app.task
    async def make() -> Order:
        return Order(7)

    @app.task
    async def ship(order: Order) -> int:
        return order.id

    async with app:
        with needs(app, Feature.DEPENDENCIES):
            async with app.worker():
                assert await (await chain(make.s(), ship.s()).add()).wait(30) == 7
            assert seen == ["north of make", "north of ship"]


async def test_nothing_is_written_if_a_step_is_refused(app, needs):
    steps = Steps(app)

    @app.task
    async def keep(number: int, text: str) -> None: ...

    with needs(app, Feature.DEPENDENCIES):
        late = chain(steps.add_one.s(1), keep.s(text="x" * 20_000_000))
        with pytest.raises(Exception, match="exceeds limit"):
            await late.add()
        assert (await app.queue("add_one").counts())[State.WAITING] == 0
    with pytest.raises(Exception, match="exceeds limit"):
        await group(steps.add_one.s(1), keep.s(1, "x" * 20_000_000)).add()
    assert (await app.queue("add_one").counts())[State.WAITING] == 0


async def test_options_that_belong_to_single_jobs_are_refused_in_chains(app, needs):
    steps = Steps(app)
    with needs(app, Feature.DEPENDENCIES):
        with pytest.raises(InvalidOption, match=r"steps\[1\].id: can't be given to a step of a chain"):
            chain(steps.add_one.s(1), steps.times.options(id="a").s())
        if app.capabilities.has(Feature.UNIQUE):

            @app.task(unique=by("number"))
            async def once(number: int) -> int:
                return number

            with pytest.raises(InvalidOption, match=r"members\[0\]: has unique=By.*another job that holds the key"):
                chord([once.s(1)], steps.total.s())
            first, again = await group(once.s(1), once.s(1)).add()
            assert first.id == again.id


async def test_a_delay_of_a_later_step_begins_or_has_ended_when_it_is_ready(app, needs):
    steps = Steps(app)
    with needs(app, Feature.DEPENDENCIES):
        async with app.worker():
            job = await chain(steps.add_one.s(1), steps.times.options(delay=0.2).s()).add()
            assert await job.wait(30) == 4


async def test_a_first_step_that_is_not_kept_gives_its_result_all_the_same(app, needs):
    steps = Steps(app)
    with needs(app, Feature.DEPENDENCIES):
        first = steps.add_one.options(**({"keep_completed": Keep.NONE} if app.capabilities.has(Feature.KEEP) else {}))
        async with app.worker():
            assert await (await chain(first.s(1), steps.times.s()).add()).wait(30) == 4


async def test_a_refusal_names_the_nearest_alternative(app):
    steps = Steps(app)
    if app.capabilities.has(Feature.DEPENDENCIES):
        return
    with pytest.raises(NotSupported, match="add the next job at the end of the first task"):
        chain(steps.add_one.s(1), steps.times.s())
    with pytest.raises(NotSupported, match="add the next job at the end of the first task"):
        chord([steps.add_one.s(1)], steps.total.s())


async def test_many_chains_at_once_lose_nothing(app, needs):
    steps = Steps(app)
    with needs(app, Feature.DEPENDENCIES):
        async with app.worker(concurrency=20), app.worker(concurrency=20):
            made = [chord([steps.add_one.s(n), steps.times.s(n)], steps.total.s()) for n in range(30)]
            jobs = await asyncio.gather(*(one.add() for one in made))
            assert [await job.wait(60) for job in jobs] == [3 * n + 1 for n in range(30)]
        assert len(steps.runs) == 90
