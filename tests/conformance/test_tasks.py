"""Typed tasks on every protocol: from the call to the result."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from jobwire import (
    ActiveJob,
    App,
    Backoff,
    Connection,
    Depends,
    Feature,
    InvalidOption,
    JobFailed,
    NotSupported,
    Queue,
    Rate,
    Snooze,
    State,
    by,
    context_of,
    current_job,
)
from jobwire.errors import MalformedPayload
from jobwire.tasks import Adding, CallNext
from tasks.shapes import Line, Order, Plan

from .conftest import with_attempts


@pytest.fixture
async def app(connection: Connection) -> AsyncIterator[App]:
    async with App(connection) as app:
        yield app


async def test_a_task_is_added_run_and_waited_for_with_its_types(app):
    @app.task
    async def ship(order: Order, by: dt.date, plan: Plan = Plan.FREE, number: uuid.UUID | None = None) -> list[Line]:
        assert isinstance(order, Order)
        assert (by, plan) == (dt.date(2026, 11, 16), Plan.PRO)
        return [*order.lines, Line(str(number), 3)]

    number = uuid.uuid4()
    async with app.worker():
        job = await ship.add(Order(1, [Line("a")]), dt.date(2026, 11, 16), Plan.PRO, number=number)
        assert await job.wait(timeout=30) == [Line("a", 1), Line(str(number), 3)]
    read = await ship.get(job.id)
    assert (read.state, read.result) == (State.COMPLETED, [Line("a", 1), Line(str(number), 3)])
    assert read.data == {
        "order": {"id": 1, "lines": [{"sku": "a", "count": 1}]},
        "by": "2026-11-16",
        "plan": "pro",
        "number": str(number),
    }


async def test_a_plain_function_runs_in_a_thread_and_has_a_blocking_job(app):
    seen: list[tuple[str, bool]] = []

    @app.task
    def halve(number: int) -> float:
        job: Any = current_job()
        seen.append((job.id, threading.current_thread() is threading.main_thread()))
        return number / 2

    async with app.worker():
        job = await halve.add(7)
        assert await job.wait(timeout=30) == 3.5
    assert seen == [(job.id, False)]


async def test_many_are_added_in_one_go(app):
    @app.task
    async def double(number: int) -> int:
        return number * 2

    jobs = await double.add_many([{"number": n} for n in range(20)])
    async with app.worker(concurrency=5):
        assert [await job.wait(timeout=30) for job in jobs] == [n * 2 for n in range(20)]
    with pytest.raises(InvalidOption, match=r"calls\[1\]\.number: must be int, not str"):
        await double.add_many([{"number": 1}, {"number": "2"}])
    with pytest.raises(InvalidOption, match=r"calls\[0\]\.arguments: must be a dict"):
        await double.add_many([5])


async def test_objects_are_added_as_they_are(app):
    @app.task
    async def count(order: Order) -> int:
        return len(order.lines)

    jobs = await count.add_many([Order(1), Order(2, [Line("a")]), {"id": 3, "lines": [{"sku": "b"}, {"sku": "c"}]}])
    async with app.worker():
        assert [await job.wait(timeout=30) for job in jobs] == [0, 1, 2]
    assert (await count.get(jobs[1].id)).data == {"id": 2, "lines": [{"sku": "a", "count": 1}]}


async def test_nothing_is_added_that_does_not_fit(app):
    @app.task
    async def send(to: str) -> None: ...

    with pytest.raises(InvalidOption, match="to: must be str, not int"):
        await send.add(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="did you mean to"):
        await send.add(too="a")  # type: ignore[call-arg]
    assert (await app.queue("send").counts())[State.WAITING] == 0


async def test_data_of_others_that_does_not_fit_fails_the_job_once_with_the_path(app, eventually):
    runs: list[Any] = []

    @app.task
    async def send(to: str, tags: list[str] = []) -> None:  # noqa: B006
        runs.append((to, tags))

    queue = app.queue("send")
    attempts = {"attempts": 3} if app.capabilities.has(Feature.ATTEMPTS) else {}
    bad = await queue.add({"to": "a", "tags": ["x", 5]}, **attempts)
    none = await queue.add(**attempts)
    good = await queue.add({"to": "a", "more": True})
    async with app.worker():
        with pytest.raises(JobFailed, match=r"task send: data\.tags\[1\]: must be str, not int"):
            await queue.wait(bad.id, timeout=30)
        with pytest.raises(JobFailed, match=r"task send: data\.to: is missing"):
            await queue.wait(none.id, timeout=30)
        await queue.wait(good.id, timeout=30)
    assert runs == [("a", [])]
    assert (await queue.get(bad.id)).state is State.FAILED


async def test_a_result_that_does_not_fit_fails_the_job_for_good(app):
    runs: list[int] = []

    @app.task
    async def total() -> int:
        runs.append(1)
        return "7"  # type: ignore[return-value]

    async with app.worker():
        job = await total.add()
        with pytest.raises(
            JobFailed, match="task total returned something else than it declares: must be int, not str"
        ):
            await job.wait(timeout=30)
    assert runs == [1]


async def test_a_result_of_another_worker_that_does_not_fit_is_named_to_who_waits(app, work):
    @app.task(queue="letters")
    async def letters() -> int:
        return 1

    job = await letters.add()
    async with work(_answer_text):
        with pytest.raises(MalformedPayload, match="of task letters: must be int, not str"):
            await job.wait(timeout=30)


async def _answer_text(job: ActiveJob) -> str:
    return "seven"


async def test_several_tasks_share_a_queue_where_jobs_have_names(app):
    @app.task(queue="mail")
    async def welcome(to: str) -> str:
        return f"welcome {to}"

    def second() -> Any:
        @app.task(queue="mail", name="bye")
        async def goodbye(to: str) -> str:
            return f"bye {to}"

        return goodbye

    if not app.capabilities.has(Feature.JOB_NAMES):
        with pytest.raises(InvalidOption, match=r"has task 'welcome' already, and .* has no job names"):
            second()
        return
    goodbye = second()
    async with app.worker():
        first, other = await welcome.add("a"), await goodbye.add("b")
        assert [await first.wait(30), await other.wait(30)] == ["welcome a", "bye b"]
    assert (await goodbye.get(other.id)).name == "bye"
    with pytest.raises(InvalidOption, match="is the name of another task"):
        second()


async def test_a_job_that_no_task_is_for_fails_or_goes_to_a_plain_handler(app):
    @app.task(queue="mail")
    async def welcome() -> None: ...

    async with app.worker():
        if app.capabilities.has(Feature.JOB_NAMES):
            unknown = await app.queue("mail").add({}, name="letter", attempts=3)
            with pytest.raises(
                JobFailed, match="no task named 'letter' in queue 'mail' of this worker; known are welcome"
            ):
                await unknown.wait(30)

    @app.handler("plain")
    async def plain(job: ActiveJob) -> str:
        return f"plain {job.data}"

    async with app.worker():
        job = await app.queue("plain").add(5)
        assert await job.wait(30) == "plain 5"


async def test_a_job_that_no_task_is_for_is_left_to_others_if_asked_for(connection, eventually):
    app = App(connection, unknown="release")

    @app.task(queue="mail")
    async def welcome() -> None: ...

    if not app.capabilities.has(Feature.JOB_NAMES):  # the queue's one task is for all of its jobs
        job = await app.queue("mail").add({})
        assert await app.worker().run_until_idle(timeout=30) == 1
        assert (await app.queue("mail").get(job.id)).state is State.COMPLETED
        await app.close()
        return
    job = await app.queue("mail").add({}, name="letter", attempts=1)
    async with app.worker() as worker:
        await eventually(lambda: worker.stats.snoozed == 1)
        found = await app.queue("mail").get(job.id)
        assert (found.state, found.attempts_made) == (State.DELAYED, 0)
    await app.close()


async def test_options_of_a_task_and_of_one_job(app):
    @app.task
    async def send(to: str) -> str:
        return to

    later = await send.options(delay=3600).add("a")
    assert (await send.get(later.id)).state is State.DELAYED
    assert (await send.get((await send.add("b")).id)).state is State.WAITING
    with pytest.raises(InvalidOption, match="delya: is not an option of task send; did you mean delay"):
        send.options(delya=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidOption, match="attempts"):
        send.options(attempts=0)


async def test_options_that_the_protocol_lacks_are_refused_when_the_task_is_defined(app):
    async def work() -> None: ...

    wanted = {
        Feature.PRIORITIES: {"priority": 2},
        Feature.BACKOFF_LINEAR: {"backoff": Backoff.linear(1)},
        Feature.RATE_LIMIT: {"rate": Rate(10)},
        Feature.LIMITS: {"max_running": 2},
        Feature.UNIQUE: {"unique": by("x")},
        Feature.UNIQUE_TTL: {"unique": by("x", for_=60)},
    }

    async def unique(x: int) -> None: ...

    for feature, options in wanted.items():
        function = unique if "unique" in options else work
        if app.capabilities.has(feature):
            app.task(name=feature.name, **options)(function)
        else:
            with pytest.raises(NotSupported, match=feature.value.partition(" with ")[0]):
                app.task(name=feature.name, **options)(function)


async def test_limits_hold_for_each_value_of_a_parameter(app, eventually):
    running: dict[str, int] = {"north": 0, "south": 0}
    most: dict[str, int] = dict(running)
    both = asyncio.Event()

    def define() -> Any:
        @app.task(max_running=1, limit_by="tenant")
        async def refresh(tenant: str) -> None:
            running[tenant] += 1
            most[tenant] = max(most[tenant], running[tenant])
            if all(running.values()):
                both.set()
            await asyncio.wait_for(both.wait(), 20)
            running[tenant] -= 1

        return refresh

    if not app.capabilities.has(Feature.KEY_LIMITS):
        with pytest.raises(NotSupported, match="limits per key"):
            define()
        return
    refresh = define()
    jobs = await refresh.add_many([{"tenant": tenant} for tenant in ("north", "north", "north", "south", "south")])
    async with app.worker(concurrency=5):
        for job in jobs:
            await job.wait(30)
    assert most == {"north": 1, "south": 1}


async def test_a_rate_holds_for_each_value_of_a_parameter(app, eventually):
    ran: list[str] = []

    async def refresh_function(tenant: str) -> None:
        ran.append(tenant)

    define = app.task(name="refresh", rate=Rate(1, per=3600), limit_by="tenant")
    if not app.capabilities.has(Feature.KEY_LIMITS):
        with pytest.raises(NotSupported, match="limits per key"):
            define(refresh_function)
        return
    refresh = define(refresh_function)
    await refresh.add_many([{"tenant": tenant} for tenant in ("north", "north", "south", "south")])
    assert await app.worker().run_until_idle(timeout=30) == 2
    assert sorted(ran) == ["north", "south"]
    assert (await app.queue("refresh").counts())[State.WAITING] == 2
    async with app.testing() as t:  # in memory the limits do not hold
        await refresh.add_many([{"tenant": "north"}, {"tenant": "north"}])
        assert (await t.run()).completed == 2


async def test_a_timeout_of_a_task_holds_on_every_protocol(app):
    @app.task(timeout=1)
    async def slow() -> None:
        await asyncio.sleep(30)

    async with app.worker():
        job = await slow.options(**({"attempts": 1} if app.capabilities.has(Feature.ATTEMPTS) else {})).add()
        with pytest.raises(JobFailed, match="timeout of 1 s"):
            await job.wait(20)


async def test_one_job_at_a_time_for_equal_arguments(app):
    async def refresh_function(user: int, why: str) -> str:
        return why

    define = app.task(name="refresh", unique=by("user"))
    if not app.capabilities.has(Feature.UNIQUE):
        with pytest.raises(NotSupported, match="unique keys"):
            define(refresh_function)
        return
    refresh = define(refresh_function)
    first = await refresh.add(1, "a")
    again = await refresh.add(1, "b")
    other = await refresh.add(2, "c")
    assert again.id == first.id
    assert other.id != first.id
    async with app.worker():
        assert await first.wait(30) == "a"
    with pytest.raises(InvalidOption, match="usr: is not a parameter of task other; did you mean user"):

        @app.task(name="other", unique=by("usr"))
        async def wrong(user: int) -> None: ...


async def test_schedules_run_the_task_with_their_arguments(app):
    @app.task
    async def report(day: str) -> str:
        return day

    schedule = await report.schedule("nightly", cron="0 3 * * *", day="mon")
    assert schedule.cron == "0 3 * * *"
    assert (await app.queue("report").schedules())[0].data == {"day": "mon"}
    with pytest.raises(InvalidOption, match="day: is required"):
        await report.schedule("other", cron="0 3 * * *")
    assert await report.unschedule("nightly")


# --- around a job -------------------------------------------------------------------------------------------------


async def test_middleware_surrounds_each_run_in_order_and_sees_errors(connection):
    steps: list[str] = []

    def noting(name: str) -> Any:
        async def middleware(job: ActiveJob, call_next: CallNext) -> Any:
            steps.append(f"{name} in {job.name}")
            try:
                return await call_next(job)
            except ValueError as error:
                steps.append(f"{name} {error}")
                raise
            finally:
                steps.append(f"{name} out")

        return middleware

    app = App(connection, middleware=[noting("outer")])

    @app.task(middleware=[noting("inner")])
    async def work(bad: bool) -> str:
        steps.append("work")
        if bad:
            raise ValueError("bad")
        return "done"

    attempts = {"attempts": 1} if app.capabilities.has(Feature.ATTEMPTS) else {}
    async with app, app.worker():
        assert await (await work.add(bad=False)).wait(30) == "done"
        assert steps == ["outer in work", "inner in work", "work", "inner out", "outer out"]
        steps.clear()
        job = await work.options(**attempts).add(bad=True)
        if attempts:
            with pytest.raises(JobFailed, match="bad"):
                await job.wait(30)
            assert steps == [
                "outer in work",
                "inner in work",
                "work",
                "inner bad",
                "inner out",
                "outer bad",
                "outer out",
            ]


async def test_context_travels_from_the_producer_to_the_run(connection):
    seen: list[Any] = []

    class Tenant:
        def adding(self, new: Adding) -> None:
            new.context["tenant"] = "north"
            new.context["task"] = new.task

        async def running(self, job: ActiveJob, call_next: CallNext) -> Any:
            seen.append(dict(context_of(job)))
            return await call_next(job)

    app = App(connection, middleware=[Tenant()])

    @app.task
    async def work(order: Order) -> int:
        return order.id

    @app.task
    async def nothing() -> None: ...

    async with app, app.worker():
        assert await (await work.add(Order(7))).wait(30) == 7
        await (await nothing.add()).wait(30)
        jobs = await work.add_many([Order(8)])
        assert await jobs[0].wait(30) == 8
    assert seen == [{"tenant": "north", "task": name} for name in ("work", "nothing", "work")]
    assert (await work.get(jobs[0].id)).data["$context"] == {"tenant": "north", "task": "work"}


async def test_dependencies_are_made_per_job_or_per_process_and_cleaned_up(connection):
    log: list[str] = []

    async def pool() -> AsyncIterator[str]:
        log.append("pool opened")
        yield "pool"
        log.append("pool closed")

    async def session(pool: str = Depends(pool, scope="process")) -> AsyncIterator[str]:
        log.append("session opened")
        try:
            yield f"session of {pool}"
        except ValueError:
            log.append("session rolled back")
            raise
        finally:
            log.append("session closed")

    @contextlib.contextmanager
    def plain() -> Iterator[str]:
        log.append("plain opened")
        yield "plain"
        log.append("plain closed")

    def user(session: str = Depends(session), job: ActiveJob = Depends(current_job)) -> str:
        return f"user of {session} for {job.name}"

    app = App(connection)

    @app.task
    async def work(
        bad: bool, session: str = Depends(session), user: str = Depends(user), plain: str = Depends(plain)
    ) -> list[str]:
        if bad:
            raise ValueError("bad")
        return [session, user, plain]

    @app.task
    def threaded(session: str = Depends(session), plain: str = Depends(plain)) -> list[str]:
        return [session, plain]

    attempts = {"attempts": 1} if app.capabilities.has(Feature.ATTEMPTS) else {}
    async with app, app.worker(concurrency=1):
        assert await (await work.add(bad=False)).wait(30) == [
            "session of pool",
            "user of session of pool for work",
            "plain",
        ]
        assert log == ["pool opened", "session opened", "plain opened", "plain closed", "session closed"]
        log.clear()
        assert await (await threaded.add()).wait(30) == ["session of pool", "plain"]
        assert log == ["session opened", "plain opened", "plain closed", "session closed"]
        log.clear()
        if attempts:
            with pytest.raises(JobFailed, match="bad"):
                await (await work.options(**attempts).add(bad=True)).wait(30)
            assert log == ["session opened", "plain opened", "session rolled back", "session closed"]
        log.clear()
    assert log == ["pool closed"]


async def test_lifespan_surrounds_the_work(connection):
    log: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[None]:
        app.state.pool = "pool"
        log.append("begins")
        yield
        log.append("ends")

    app = App(connection, lifespan=lifespan)

    @app.task
    async def work() -> str:
        log.append("works")
        return app.state.pool

    async with app:
        job = await work.add()
        async with app.worker():
            assert await job.wait(30) == "pool"
    assert log == ["begins", "works", "ends"]


@with_attempts(2)
async def test_hooks_are_called_when_a_job_has_failed_for_good(connection, tries):
    failed: list[tuple[str, str | None, int]] = []
    app = App(connection)

    @app.on_failed
    async def note(job: Any) -> None:
        failed.append((job.name, job.error, len(job.stacktrace)))
        raise RuntimeError("a hook that fails is only logged")

    def own(job: Any) -> None:
        failed.append(("own", job.error, 0))

    runs: list[int] = []

    @app.task(on_failed=own)
    async def work() -> None:
        runs.append(1)
        raise ValueError(f"run {len(runs)}")

    async with app, app.worker(**tries.worker):
        job = await work.options(**tries.job).add()
        with pytest.raises(JobFailed):
            await job.wait(30)
    assert len(runs) == 2
    assert [one[:2] for one in failed] == [("own", "run 2"), ("work", "run 2")]


async def test_a_task_may_snooze(app, eventually):
    runs: list[int] = []

    @app.task
    async def work() -> str:
        runs.append(1)
        if len(runs) == 1:
            raise Snooze(0.1)
        return "done"

    async with app.worker():
        assert await (await work.add()).wait(30) == "done"
    assert len(runs) == 2


async def test_a_worker_of_an_app_works_on_chosen_queues(app, eventually):
    @app.task
    async def one() -> int:
        return 1

    @app.task
    async def two() -> int:
        return 2

    left = await two.add()
    async with app.worker(["one"]):
        assert await (await one.add()).wait(30) == 1
    assert (await two.get(left.id)).state is State.WAITING
    async with app.worker({"one": 1, "two": 3}, concurrency=3):
        assert await left.wait(30) == 2
    with pytest.raises(InvalidOption, match="queues: is not a queue of this app; did you mean one"):
        app.worker(["ones"])


async def test_a_task_can_be_called_as_the_function_that_it_is(app):
    @app.task
    async def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    @app.task
    def plain(a: int) -> int:
        return a

    assert (await add(1, b=2), plain(3)) == (3, 3)
    assert (add.__name__, add.__doc__) == ("add", "Adds.")
    assert isinstance(app.queue("add"), Queue)
