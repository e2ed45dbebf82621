"""Tasks that handlers make, and handlers that cancel themselves: one run fails, and the worker goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from awaiting import eventually
from jobwire import Connection, JobFailed, Queue, State, Worker
from jobwire.worker import running


async def leave(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


async def gathered(error: BaseException) -> None:
    await asyncio.gather(leave(error))


async def waited_for(error: BaseException) -> None:
    await asyncio.wait_for(asyncio.create_task(leave(error)), 5)


async def nested(error: BaseException) -> None:
    await asyncio.create_task(gathered(error))


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("how", [gathered, waited_for, nested])
async def test_a_task_of_a_handler_that_exits_fails_the_run_and_not_the_worker(
    queue: Queue, connection: Connection, how: Callable[[Any], Coroutine[Any, Any, None]], error: BaseException
) -> None:
    async def handler(job: Any) -> str:
        if job.data == "bad":
            await how(error)
        return "fine"

    async with Worker("work", handler, connection) as worker:
        bad = await queue.add("bad")
        expected = f"a task that the handler of job {bad.id} has made raised {error!r}"
        with pytest.raises(JobFailed, match=expected.replace("(", r"\(").replace(")", r"\)")):
            await bad.wait(5)
        assert await (await queue.add("good")).wait(5) == "fine"
        assert worker.running
    assert asyncio.get_running_loop().get_task_factory() is None


async def test_a_task_group_of_a_handler_gets_the_exit_as_an_error(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> str:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(leave(SystemExit(3)))
        except ExceptionGroup as errors:
            return str(errors.exceptions[0])
        return "no error"

    async with Worker("work", handler, connection):
        assert "SystemExit(3)" in await (await queue.add(1)).wait(5)


async def test_a_task_that_a_handler_leaves_behind_and_that_exits_is_named_in_the_log(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(job: Any) -> str:
        asyncio.create_task(leave(SystemExit(3)))  # noqa: RUF006 - left behind on purpose
        return "fine"

    async with Worker("work", handler, connection):
        job = await queue.add(1)
        assert await job.wait(5) == "fine"
        await eventually(lambda: f"the handler of job {job.id} has made raised SystemExit(3)" in caplog.text)


async def test_a_task_of_a_handler_that_is_cancelled_before_it_starts_is_no_warning(
    queue: Queue, connection: Connection
) -> None:
    async def handler(job: Any) -> str:
        task = asyncio.create_task(leave(ValueError("never")))
        assert task.get_coro().__qualname__ == "leave"  # type: ignore[union-attr]
        task.cancel()
        await asyncio.wait([task])
        return "fine"  # warnings are errors here

    async with Worker("work", handler, connection):
        assert await (await queue.add(1)).wait(5) == "fine"


async def test_other_tasks_of_the_loop_are_left_alone(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None: ...

    def own_factory(loop: Any, coroutine: Any, **options: Any) -> Any:
        return asyncio.Task(coroutine, loop=loop, **options)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(own_factory)
    try:
        async with Worker("work", handler, connection), Worker("work", handler, connection):
            await (await queue.add(1)).wait(5)
            assert asyncio.create_task(asyncio.sleep(0)).get_coro().__qualname__ == "sleep"  # type: ignore[union-attr]
        assert loop.get_task_factory() is own_factory
    finally:
        loop.set_task_factory(None)


async def by_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def by_a_callback() -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)
    await asyncio.sleep(600)


@pytest.mark.parametrize("how", [by_itself, by_a_callback])
async def test_a_handler_that_cancels_its_own_task_has_failed(
    queue: Queue, connection: Connection, how: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    runs: list[Any] = []

    async def handler(job: Any) -> str:
        runs.append(job.data)
        if job.data == "bad":
            await how()
        return "fine"

    async with Worker("work", handler, connection):
        bad, good = await queue.add("bad"), await queue.add("good")
        assert await good.wait(5) == "fine"
        with pytest.raises(JobFailed, match="the handler was cancelled from within"):
            await bad.wait(5)
    assert runs == ["bad", "good"]


def test_a_worker_that_is_cancelled_with_its_event_loop_does_not_fail_its_jobs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def endless(job: Any) -> None:
        await asyncio.sleep(600)

    async def main() -> None:
        async with Queue("work", "memory:cancelled-with-its-loop") as queue:
            worker = Worker("work", endless, queue.connection)
            task = asyncio.create_task(worker.run(signals=False))
            await queue.add(1)
            await eventually(lambda: worker.busy == 1)
            for one in asyncio.all_tasks() - {asyncio.current_task()}:
                one.cancel()
            await asyncio.wait([task])
            assert worker.stats.failed == 0
            [job] = await queue.jobs(State.ACTIVE)
            assert job.error is None

    asyncio.run(main())
    assert "cancelled from within" not in caplog.text


async def test_a_task_that_ignores_cancellation_is_abandoned_with_its_handler(
    queue: Queue, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_CLEAN_UP", 0.1)
    go = asyncio.Event()

    async def stubborn() -> None:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue

    async def handler(job: Any) -> None:
        await asyncio.gather(stubborn())

    async with Worker("work", handler, connection, timeout=0.1) as worker:
        with pytest.raises(JobFailed, match="longer than its timeout"):
            await (await queue.add(1)).wait(5)
        await eventually(lambda: worker.busy == 0)
        # `asyncio.run` waits for all tasks at its end, so this one must not be among them.
        assert [task for task in asyncio.all_tasks() if "stubborn" in repr(task)] == []
    go.set()
    await asyncio.sleep(0)


async def test_a_handler_that_waits_for_its_own_worker_in_a_task_is_refused(
    queue: Queue, connection: Connection
) -> None:
    async def handler(job: Any) -> None:
        await asyncio.gather(worker.pause())

    async with Worker("work", handler, connection) as worker:
        with pytest.raises(JobFailed, match="must be False in a handler of this worker"):
            await (await queue.add(1)).wait(5)
