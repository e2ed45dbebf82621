"""One worker of several queues: what does not depend on the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from typing import Any

import pytest

from awaiting import eventually
from jobwire import Connection, Queue, State, StoreUnavailable, Worker, sync
from jobwire.worker.active import ActiveJob
from jobwire.worker.handlers import Begin
from jobwire.worker.threads import Threads


class Tasks:
    """Makes a runner that dispatches by the name of a job: to a coroutine function or to a thread."""

    def __init__(self) -> None:
        self.queues: list[str] = []
        self.go_on = threading.Event()

    def make_runner(self, queue: str) -> Dispatcher:
        self.queues.append(queue)
        return Dispatcher(self, queue)


class Dispatcher:
    def __init__(self, tasks: Tasks, queue: str) -> None:
        self._tasks = tasks
        self._threads = Threads(queue)

    def can_interrupt(self, job: ActiveJob) -> bool:
        return job.name == "async"

    async def __call__(self, job: ActiveJob, begin: Begin) -> Any:
        begin()
        if job.name == "async":
            await asyncio.Event().wait()
        return await self._threads.call(self._wait)

    def _wait(self) -> str:
        self._tasks.go_on.wait()
        return "finished"

    def runs_here(self) -> bool:
        return self._threads.runs_here()

    def close(self) -> None:
        self._threads.close()


async def test_an_object_can_make_the_runner_which_decides_job_by_job_what_can_be_interrupted(
    queue: Queue, connection: Connection
) -> None:
    tasks = Tasks()
    async with Worker({"work": tasks}, url=connection, concurrency=2) as worker:
        in_loop, in_thread = await queue.add(1, name="async"), await queue.add(2, name="thread")
        await eventually(lambda: worker.busy == 2)
        assert worker.cancel(in_loop.id)
        assert worker.cancel(in_thread.id)
        await eventually(lambda: worker.busy == 1)
        tasks.go_on.set()
        assert await in_thread.wait(10) == "finished"
    stored = await queue.get(in_loop.id)
    assert stored is not None
    assert stored.state is State.FAILED
    assert set(tasks.queues) == {"work"}


async def test_a_queue_whose_store_stays_away_ends_the_worker_and_the_others_release_their_jobs(
    queue: Queue, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stuck(job: Any) -> None:
        await asyncio.Event().wait()

    async def away(*args: Any) -> Any:
        raise StoreUnavailable("away")

    worker = Worker({"work": stuck, "other": stuck}, url=connection, concurrency=2, max_reconnect_attempts=1)
    added = await queue.add(1)
    running = asyncio.create_task(worker.run(signals=False))
    await eventually(lambda: worker.busy == 1 and worker.stats_of("other").calls)
    engines = worker._life.engines
    assert engines is not None
    monkeypatch.setattr(engines.consumers["other"], "settle", away)
    async with Queue("other", connection) as other:
        await other.add(2)
        with pytest.raises(StoreUnavailable, match="gave up after 1 attempt"):
            await asyncio.wait_for(running, 30)
    stored = await queue.get(added.id)
    assert stored is not None
    assert stored.state is State.WAITING
    assert worker.stats_of("work").released == 1


async def test_log_lines_name_the_queue(queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture) -> None:
    async def fails(job: Any) -> None:
        raise ValueError("no")

    caplog.set_level(logging.INFO, "jobwire.worker")
    await queue.add(1)
    worker = Worker({"work": fails, "other": fails}, url=connection, worker_id="w")
    assert await worker.run_until_idle() == 1
    assert "[w] started on queues work, other, concurrency 1" in caplog.messages
    assert any(line.startswith("[w] work: job ") for line in caplog.messages), caplog.messages


@pytest.mark.parametrize("signals", [1, 2])
async def test_signals_while_the_lifespan_is_entered_stop_the_worker(
    queue: Queue, connection: Connection, signals: int
) -> None:
    entering, go_on = asyncio.Event(), asyncio.Event()
    left: list[bool] = []

    @contextlib.asynccontextmanager
    async def slow() -> Any:
        entering.set()
        try:
            await go_on.wait()
            yield
        finally:
            left.append(True)

    async def handler(job: Any) -> None: ...

    await queue.add(1)
    worker = Worker("work", handler, connection, lifespan=slow)
    running = asyncio.create_task(worker.run())
    await entering.wait()
    for _ in range(signals):
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)
    await eventually(lambda: not worker.claiming)
    if signals == 1:
        assert not running.done()
        go_on.set()
    await asyncio.wait_for(running, 20)
    assert (left, worker.stats.claimed) == ([True], 0)


def test_a_blocking_program_works_on_several_queues() -> None:
    url = "memory:sync-several"
    with sync.connect(url) as connection, sync.Queue("a", connection) as a, sync.Queue("b", connection) as b:
        a.add(1)
        b.add(2)
        worker = sync.Worker({"a": lambda job: job.data, "b": lambda job: job.data}, url=connection)
        assert worker.run_until_idle(timeout=30) == 2
        assert (worker.queues, worker.stats.completed, worker.stats_of("b").completed) == (("a", "b"), 2, 1)
