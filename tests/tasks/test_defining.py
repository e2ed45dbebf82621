"""What can't be a task, a dependency, a middleware or an app is refused when it is defined, with its reason."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jobwire import ActiveJob, App, Backoff, Depends, InvalidOption, QueueHandler, Rate, Worker, by, chord, current_job
from jobwire.tasks import CallNext


@pytest.fixture
def app() -> App:
    return App(f"memory:{uuid.uuid4().hex}")


async def job_value() -> int:
    return 1


def needs_more(size: int) -> int:
    return size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attemps": 3}, "attemps: is not an option of a task; did you mean attempts"),
        ({"retries": 3}, "retries: is not an option of a task; did you mean attempts"),
        ({"attempts": 0}, "attempts"),
        ({"backoff": 3}, "backoff: must be a Backoff"),
        ({"timeout": -1}, "timeout"),
        ({"id": "7"}, r"id: belongs to one job: use task.options"),
        ({"queue": ""}, "queue"),
        ({"name": 5}, "name"),
        ({"executor": "fibre"}, "executor: must be async, thread or process"),
        ({"executor": "thread"}, "executor: needs a plain function"),
        ({"rate": 5}, "rate"),
        ({"max_running": 0}, "max_running"),
        ({"limit_by": "user"}, "limit_by: needs a limit"),
        ({"limit_by": "usr", "max_running": 2}, "usr: is not a parameter of task work; did you mean user"),
        ({"unique": "user"}, r"unique: must be by\(…\)"),
        ({"unique": by("nobody")}, "nobody: is not a parameter of task work"),
        ({"middleware": [5]}, r"middleware\[0\]: must be a coroutine function"),
        ({"middleware": [lambda job, call_next: None]}, r"middleware\[0\]: must be a coroutine function"),
        ({"on_failed": 5}, "on_failed: must be a function"),
    ],
)
def test_options_of_a_task(app: App, options: dict[str, Any], message: str) -> None:
    async def work(user: int) -> None: ...

    with pytest.raises(InvalidOption, match=message):
        app.task(**options)(work)
    assert not app.tasks


def test_functions_that_are_no_tasks(app: App) -> None:
    async def many() -> AsyncIterator[int]:
        yield 1

    class Thing:
        def __call__(self) -> None: ...

    for function, message in (
        (many, "has a yield in it"),
        (lambda: None, "is a lambda"),
        (Thing(), "must be a function"),
        (print, "must be a function"),
    ):
        with pytest.raises(InvalidOption, match=message):
            app.task(function)

    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidOption, match="is a task already"):
        app.task(work)


def test_limits_hold_for_queues_so_tasks_with_limits_are_alone() -> None:
    app = App(f"memory:{uuid.uuid4().hex}")

    @app.task(queue="mail", rate=Rate(10))
    async def one() -> None: ...

    with pytest.raises(InvalidOption, match="rate: holds for a whole queue, and 'mail' has several tasks: give 'one'"):

        @app.task(queue="mail")
        async def two() -> None: ...

    @app.task(queue="other")
    async def three() -> None: ...

    with pytest.raises(InvalidOption, match="max_running: holds for a whole queue"):

        @app.task(queue="other", max_running=3)
        async def four() -> None: ...


def test_dependencies_that_can_not_be_provided() -> None:
    with pytest.raises(InvalidOption, match="needs a default for size"):
        Depends(needs_more)
    with pytest.raises(InvalidOption, match="must be a function"):
        Depends(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="must be job or process"):
        Depends(job_value, scope="thread")  # type: ignore[arg-type]

    def pool(value: int = Depends(job_value)) -> int:
        return value

    with pytest.raises(InvalidOption, match="can't depend on value, which is made for each job"):
        Depends(pool, scope="process")


def test_options_of_an_app() -> None:
    for options, message in (
        ({"middelware": []}, "middelware: is not an option of an App; did you mean middleware"),
        ({"unknown": "ignore"}, "unknown: must be fail or release"),
        ({"lifespan": 5}, "lifespan: must be a function"),
        ({"defaults": 5}, "defaults: must be a dict"),
        ({"defaults": {"id": "7"}}, "defaults.id"),
        ({"defaults": {"attemps": 7}}, "attemps"),
        ({"middleware": [App]}, "is a class; give an object of it"),
    ):
        with pytest.raises(InvalidOption, match=message):
            App(f"memory:{uuid.uuid4().hex}", **options)  # type: ignore[arg-type]


async def test_defaults_of_an_app_are_those_of_its_tasks() -> None:
    app = App(f"memory:{uuid.uuid4().hex}", defaults={"attempts": 4, "backoff": Backoff.fixed(9), "priority": 3})

    @app.task(attempts=2)
    async def work() -> None: ...

    job = await work.add()
    assert (job.attempts, job.priority) == (2, 3)
    await app.close()


@pytest.mark.parametrize("option", ["url", "executor", "lifespan"])
def test_options_of_a_worker_that_an_app_has_itself(app: App, option: str) -> None:
    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidOption, match=f"{option}: can't be given"):
        app.worker(**{option: "memory:"})


async def test_what_is_not_a_list_is_refused_by_name(app: App) -> None:
    @app.task
    async def work(number: int, note: str = "") -> None: ...

    for bad in (5, None):
        with pytest.raises(InvalidOption, match="calls: must be a list"):
            await work.add_many(bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidOption, match="members: must be a list"):
            chord(bad, work.s(1))  # type: ignore[arg-type]
    for bad, message in ((5, "queues: must be a list"), ([b"x"], "queues: must be a string")):
        with pytest.raises(InvalidOption, match=message):
            app.worker(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"calls\[0\]\.arguments: must be a string"):
        await work.add_many([{1: 2}])
    with pytest.raises(InvalidOption, match="must be valid Unicode"):
        await work.add("a\ud800")  # type: ignore[arg-type]


def test_no_job_runs_here() -> None:
    with pytest.raises(LookupError, match="no task is running here"):
        current_job()


async def test_tasks_and_apps_join_a_worker_of_handlers() -> None:
    app = App(f"memory:{uuid.uuid4().hex}")

    @app.task
    async def one() -> int:
        return 1

    @app.task
    def two() -> int:
        return 2

    async def plain(job: ActiveJob) -> str:
        return "plain"

    handlers = {"one": one, "two": QueueHandler(app, concurrency=1), "other": plain}
    async with Worker(handlers, url=app.connection, concurrency=3):
        assert await (await one.add()).wait(30) == 1
        assert await (await two.add()).wait(30) == 2
        assert await (await app.queue("other").add({})).wait(30) == "plain"
    with pytest.raises(InvalidOption, match="is not the queue of task one, which is 'one'"):
        Worker({"two": one}, url=app.connection)
    app.on_failed(print)
    with pytest.raises(InvalidOption, match=r"needs app.worker\(\)"):
        Worker({"one": one}, url=app.connection)


async def test_middleware_may_be_added_as_a_decorator_and_call_the_rest_without_the_job() -> None:
    app = App(f"memory:{uuid.uuid4().hex}")

    @app.middleware
    async def middleware(job: ActiveJob, call_next: CallNext) -> Any:
        return [await call_next(), job.name]

    @app.task
    async def work():  # type: ignore[no-untyped-def]
        return 1

    async with app, app.worker():
        assert await (await work.add()).wait(30) == [1, "work"]


async def test_a_lifespan_is_a_context_manager_or_a_generator_with_or_without_the_app() -> None:
    log: list[str] = []

    async def generator() -> AsyncIterator[None]:
        log.append("begins")
        yield
        log.append("ends")

    async def of_the_app(app: App) -> AsyncIterator[None]:
        log.append(f"begins with {len(app.tasks)} task")
        yield

    for lifespan in (generator, contextlib.asynccontextmanager(generator), of_the_app):
        app = App(f"memory:{uuid.uuid4().hex}", lifespan=lifespan)  # type: ignore[arg-type]

        @app.task
        async def work() -> None: ...

        async with app:
            await app.worker().run_until_idle()
    assert log == ["begins", "ends", "begins", "ends", "begins with 1 task"]


async def test_hooks_of_one_task_may_be_added_as_a_decorator() -> None:
    app = App(f"memory:{uuid.uuid4().hex}")
    failed: list[str] = []

    @app.task
    async def work() -> None:
        raise ValueError("no")

    @app.task
    async def other() -> None:
        raise ValueError("no")

    @work.on_failed
    async def note(job: Any) -> None:
        failed.append(job.name)

    async with app:
        await work.add()
        await other.add()
        await app.worker().run_until_idle()
    assert failed == ["work"]
