"""Stopping a worker: nothing is lost, nothing is charged, nobody waits for ever."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from awaiting import eventually
from jobwire import Connection, Queue, State, StoreUnavailable, Worker
from jobwire.backends.memory.work.consumer import MemoryConsumer
from jobwire.boundary import Outcome, Settled


async def test_stop_lets_running_jobs_finish_and_claims_no_more(queue: Queue, connection: Connection) -> None:
    go = asyncio.Event()

    async def handler(job: Any) -> str:
        await go.wait()
        return "finished"

    worker = Worker("work", handler, connection, concurrency=2)
    running = asyncio.create_task(worker.run(signals=False))
    jobs = [await queue.add(n) for n in range(4)]
    await eventually(lambda: worker.busy == 2)
    stopping = asyncio.create_task(worker.stop())
    await eventually(lambda: not worker.claiming)
    go.set()
    await stopping
    assert running.done()
    states = [(await queue.get(job.id)).state for job in jobs]  # type: ignore[union-attr]
    assert states == [State.COMPLETED, State.COMPLETED, State.WAITING, State.WAITING]


async def test_what_does_not_finish_in_time_is_handed_back_uncharged_and_runs_next(
    queue: Queue, connection: Connection
) -> None:
    async def endless(job: Any) -> None:
        await asyncio.sleep(600)

    worker = Worker("work", endless, connection, shutdown_timeout=0.1)
    running = asyncio.create_task(worker.run(signals=False))
    first = await queue.add("first")
    await queue.add("second")
    await eventually(lambda: worker.busy == 1)
    await worker.stop()
    await running
    assert worker.stats.released == 1
    stored = await queue.get(first.id)
    assert stored is not None
    assert (stored.state, stored.attempts_made) == (State.WAITING, 0)
    assert [job.data for job in await queue.jobs(State.WAITING)] == ["first", "second"]


async def test_stop_now_does_not_wait(queue: Queue, connection: Connection) -> None:
    async def endless(job: Any) -> None:
        await asyncio.sleep(600)

    worker = Worker("work", endless, connection, shutdown_timeout=600)
    running = asyncio.create_task(worker.run(signals=False))
    await queue.add(1)
    await eventually(lambda: worker.busy == 1)
    await worker.stop(now=True)
    async with asyncio.timeout(10):
        await running
    assert worker.stats.released == 1


async def test_a_handler_that_ignores_cancellation_does_not_hold_the_worker(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    go = asyncio.Event()

    async def stubborn(job: Any) -> None:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue

    worker = Worker("work", stubborn, connection, shutdown_timeout=0.05)
    running = asyncio.create_task(worker.run(signals=False))
    job = await queue.add(1)
    await eventually(lambda: worker.busy == 1)
    async with asyncio.timeout(15):
        await worker.stop()
    await running
    assert f"shutting down without confirmation for 1 job ({job.id})" in caplog.text
    assert f"abandoned the handler of job {job.id}" in caplog.text
    assert not [task for task in asyncio.all_tasks() if "stubborn" in repr(task.get_coro())]
    go.set()


async def test_a_worker_stopped_before_its_first_job_ran_hands_it_back(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None: ...

    for n in range(20):
        await queue.add(n)
    for _ in range(5):
        worker = Worker("work", handler, connection, concurrency=5)
        running = asyncio.create_task(worker.run(signals=False))
        for _ in range(3):
            await asyncio.sleep(0)
        await worker.stop(now=True)
        await running
    counts = await queue.counts()
    assert counts[State.ACTIVE] == 0
    assert counts[State.WAITING] + counts[State.COMPLETED] == 20


PROGRAM = """
import asyncio, logging, sys
from jobwire import Queue, Worker, connect

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)

async def handler(job):
    print("started", flush=True)
    await asyncio.sleep(float(job.data))
    print("ended", flush=True)

async def main():
    async with connect("memory:here") as connection, Queue("work", connection) as queue:
        await queue.add(sys.argv[1])
        worker = Worker("work", handler, connection, shutdown_timeout=60)
        await worker.run()
        print("completed", worker.stats.completed, "released", worker.stats.released, flush=True)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seconds", "signals", "last"),
    [
        ("0.5", [signal.SIGTERM], b"completed 1 released 0\n"),
        ("0.5", [signal.SIGINT], b"completed 1 released 0\n"),
        ("600", [signal.SIGTERM, signal.SIGTERM], b"completed 0 released 1\n"),
    ],
)
async def test_signals_stop_a_worker_process(
    tmp_path: Path, seconds: str, signals: list[signal.Signals], last: bytes
) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(program), seconds, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    async with asyncio.timeout(60):
        await _line_with(process.stdout, b"started\n")
        for number in signals[:-1]:
            process.send_signal(number)
            await _line_with(process.stdout, b"stopping")  # two signals sent at once may arrive as one
        process.send_signal(signals[-1])
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert out.endswith(last), (out, err)


async def _line_with(stream: asyncio.StreamReader, text: bytes) -> None:
    while text not in (line := await stream.readline()):
        assert line, f"the program ended without {text!r}"


class Unreachable(MemoryConsumer):
    """A store that goes away after the first claim and does not come back."""

    calls = 0

    async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        self.calls += 1
        if self.calls > 1:
            raise StoreUnavailable("the store is away")
        return await super().settle(outcomes, claim)


class SlowLink(MemoryConsumer):
    """A store whose answer to a claim is under way for as long as the test wants."""

    claimed = asyncio.Event()
    arrive = asyncio.Event()

    async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        settled = await super().settle(outcomes, claim)
        if settled.claims:
            self.claimed.set()
            await self.arrive.wait()
        return settled


@pytest.mark.parametrize("concurrency", [1, 20])
async def test_a_job_whose_claim_is_under_way_when_the_worker_is_stopped_is_not_left_active(
    queue: Queue, connection: Connection, monkeypatch: pytest.MonkeyPatch, concurrency: int
) -> None:
    """An idle worker is woken by the job and claims it; then it is stopped, before the answer arrives."""
    monkeypatch.setattr("jobwire.backends.memory.backend.MemoryConsumer", SlowLink)
    monkeypatch.setattr(SlowLink, "claimed", asyncio.Event())
    monkeypatch.setattr(SlowLink, "arrive", asyncio.Event())

    async def handler(job: Any) -> str:
        return "done"

    worker = Worker("work", handler, connection, concurrency=concurrency)
    running = asyncio.create_task(worker.run(signals=False))
    await eventually(lambda: worker.stats.calls > 0)
    job = await queue.add(1)
    await SlowLink.claimed.wait()
    stopping = asyncio.create_task(worker.stop())
    await asyncio.sleep(0)
    await asyncio.wait([running], timeout=0.1)
    SlowLink.arrive.set()
    await stopping
    await running
    assert await job.wait(5) == "done"
    assert (await queue.counts())[State.ACTIVE] == 0


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobwire.backends.memory.backend.MemoryConsumer", Unreachable)


@pytest.mark.usefixtures("unreachable")
async def test_a_worker_that_dies_cancels_the_block_that_relies_on_it(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None: ...

    job = await queue.add(1)
    with pytest.raises(StoreUnavailable, match="gave up after 2 attempts to reach the store: the store is away"):
        async with Worker("work", handler, connection, max_reconnect_attempts=2) as worker:
            await job.wait(60)
    assert worker.stats.reconnects == 2
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.usefixtures("unreachable")
async def test_a_worker_that_gives_up_stops_its_handlers_first(queue: Queue, connection: Connection) -> None:
    seen: list[str] = []

    async def handler(job: Any) -> None:
        seen.append("started")
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    await queue.add("long")
    worker = Worker("work", handler, connection, concurrency=2, max_reconnect_attempts=1)
    running = asyncio.create_task(worker.run(signals=False))
    await eventually(lambda: seen == ["started"])
    await queue.add("wakes the worker up, whose next call fails")
    with pytest.raises(StoreUnavailable):
        await running
    assert seen == ["started", "cancelled"]


async def test_a_run_that_is_cancelled_hands_its_jobs_back(queue: Queue, connection: Connection) -> None:
    async def endless(job: Any) -> None:
        await asyncio.sleep(600)

    worker = Worker("work", endless, connection)
    running = asyncio.create_task(worker.run(signals=False))
    job = await queue.add(1)
    await eventually(lambda: worker.busy == 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    stored = await queue.get(job.id)
    assert stored is not None
    assert (stored.state, stored.attempts_made) == (State.WAITING, 0)


STUBBORN = """
import asyncio, time
from jobwire import Queue, Worker, connect

async def handler(job):
    print("started", flush=True)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            pass

async def main():
    async with connect("memory:here") as connection, Queue("work", connection) as queue:
        await queue.add(1)
        await Worker("work", handler, connection, shutdown_timeout=0.5).run()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_process_ends_although_a_handler_ignores_cancellation(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(STUBBORN)
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(program), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(40):  # the handler goes on for a minute
        assert await process.stdout.readline() == b"started\n"
        process.send_signal(signal.SIGTERM)
        _, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert b"abandoned the handler of job 1" in err
    assert b"Task was destroyed" not in err
