"""Pausing one worker: it claims nothing, everything else goes on, and resuming it is enough."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from awaiting import eventually
from jobwire import Connection, InvalidOption, Queue, State, Worker
from jobwire.backends.memory.work.consumer import MemoryConsumer
from worker import handlers
from worker.test_engine_states import EngineStates


async def answer(job: Any) -> Any:
    return job.data


async def test_a_worker_paused_before_it_runs_starts_paused_and_claims_when_resumed(
    queue: Queue, connection: Connection
) -> None:
    worker = Worker("work", answer, connection)
    await worker.pause()
    assert worker.paused
    job = await queue.add("later")
    async with worker:
        await worker.pause()
        assert (worker.stats.calls, worker.busy) == (0, 0)
        worker.resume()
        assert not worker.paused
        assert await job.wait(10) == "later"


async def test_pausing_and_resuming_twice_is_as_good_as_once(queue: Queue, connection: Connection) -> None:
    async with Worker("work", answer, connection) as worker:
        worker.resume()
        assert await (await queue.add(1)).wait(10) == 1
        await worker.pause()
        await worker.pause()
        job = await queue.add(2)
        worker.resume()
        worker.resume()
        assert await job.wait(10) == 2


@pytest.mark.parametrize("concurrency", [1, 20])
async def test_a_pause_waits_until_running_jobs_are_settled(
    queue: Queue, connection: Connection, concurrency: int
) -> None:
    go = asyncio.Event()

    async def handler(job: Any) -> str:
        await go.wait()
        return "finished"

    async with Worker("work", handler, connection, concurrency=concurrency) as worker:
        job = await queue.add(1)
        await eventually(lambda: worker.busy == 1)
        pausing = asyncio.create_task(worker.pause())
        await worker.pause(wait=False)
        assert worker.paused
        later = await queue.add(2)
        assert not pausing.done()
        go.set()
        await pausing
        states = [(await queue.get(one.id)).state for one in (job, later)]  # type: ignore[union-attr]
        assert states == [State.COMPLETED, State.WAITING]


async def test_a_pause_that_is_resumed_waits_no_longer(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None:
        await asyncio.Event().wait()

    async with Worker("work", handler, connection, shutdown_timeout=0) as worker:
        await queue.add(1)
        await eventually(lambda: worker.busy == 1)
        pausing = asyncio.create_task(worker.pause())
        await eventually(lambda: worker.paused)
        worker.resume()
        await asyncio.wait_for(pausing, 10)


async def test_a_pause_does_not_outlast_its_worker(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None:
        await asyncio.Event().wait()

    worker = Worker("work", handler, connection)
    async with worker:
        job = await queue.add(1)
        await eventually(lambda: worker.busy == 1)
        pausing = asyncio.create_task(worker.pause())
        await eventually(lambda: worker.paused)
        await worker.stop(now=True)
        await asyncio.wait_for(pausing, 10)
    stored = await queue.get(job.id)
    assert stored is not None
    assert (stored.state, stored.attempts_made) == (State.WAITING, 0)
    await asyncio.wait_for(worker.pause(), 10)


async def test_a_handler_can_pause_its_worker_but_not_wait_for_itself(queue: Queue, connection: Connection) -> None:
    refused: list[InvalidOption] = []

    async def handler(job: Any) -> str:
        with pytest.raises(InvalidOption) as refusal:
            await worker.pause()
        refused.append(refusal.value)
        assert not worker.paused
        await worker.pause(wait=False)
        return "last"

    worker = Worker("work", handler, connection)
    async with worker:
        first, second = await queue.add(1), await queue.add(2)
        assert await first.wait(10) == "last"
        await worker.pause()
        stored = await queue.get(second.id)
        assert stored is not None
        assert stored.state is State.WAITING
    assert [one.field for one in refused] == ["wait"]


@pytest.mark.parametrize("wait", [None, 1, "yes"])
async def test_wait_is_true_or_false(connection: Connection, wait: Any) -> None:
    worker = Worker("work", answer, connection)
    with pytest.raises(InvalidOption, match="wait: must be True or False"):
        await worker.pause(wait=wait)
    assert not worker.paused


async def test_leases_are_renewed_and_dead_workers_jobs_recovered_while_paused(
    queue: Queue, connection: Connection
) -> None:
    go = asyncio.Event()

    async def handler(job: Any) -> str:
        await go.wait()
        return "kept"

    async with Worker("work", handler, connection, lease=1.5, recover_every=0.1) as worker:
        job = await queue.add(1)
        await eventually(lambda: worker.busy == 1)
        await worker.pause(wait=False)
        renewed = worker.stats.heartbeats
        abandoned = await queue.add(2)
        lost = connection.backend.consumer(worker._plans["work"].settings)
        [claim] = (await lost.settle([], 1)).claims
        assert claim.job.id == abandoned.id
        await eventually(lambda: worker.stats.recovered == 1)
        await eventually(lambda: worker.stats.heartbeats > renewed + 1)
        go.set()
        await worker.pause()
        assert await job.wait(10) == "kept"
        assert worker.stats.lost == 0
        await lost.close()


class Counting(MemoryConsumer):
    """Counts what a worker asks of its store."""

    asked = 0

    async def settle(self, outcomes: Any, claim: int) -> Any:
        Counting.asked += 1
        return await super().settle(outcomes, claim)

    async def wait(self, timeout: float) -> None:
        Counting.asked += 1
        await super().wait(timeout)

    async def pass_on(self) -> None:
        Counting.asked += 1
        await super().pass_on()


async def test_a_paused_worker_asks_nothing_of_its_store(
    queue: Queue, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobwire.backends.memory.backend.MemoryConsumer", Counting)
    monkeypatch.setattr(Counting, "asked", 0)
    async with Worker("work", answer, connection, recover_every=600) as worker:
        assert await (await queue.add(1)).wait(10) == 1
        await worker.pause()
        asked = Counting.asked
        jobs = [await queue.add(n) for n in range(20)]
        await queue.add(21, delay=0.01)
        for _ in range(200):
            await asyncio.sleep(0.001)
        assert Counting.asked == asked
        worker.resume()
        assert [await job.wait(10) for job in jobs] == list(range(20))


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["thread", "process"])
async def test_jobs_of_threads_and_processes_finish_while_paused(
    queue: Queue, connection: Connection, executor: Any, tmp_path: Path
) -> None:
    async with Worker("work", handlers.until_there, connection, executor=executor) as worker:
        job, later = await queue.add(str(tmp_path / "go")), await queue.add(str(tmp_path))
        await eventually(lambda: worker.busy == 1)
        await worker.pause(wait=False)
        (tmp_path / "go").touch()
        await worker.pause()
        stored = [await queue.get(one.id) for one in (job, later)]
        assert [one.state for one in stored if one] == [State.COMPLETED, State.WAITING]
        worker.resume()
        assert await later.wait(30) == "found, cancelled: False"


PROGRAM = """
import asyncio
from jobwire import Queue, Worker, connect

async def handler(job):
    print("ran", flush=True)

async def main():
    async with connect("memory:here") as connection, Queue("work", connection) as queue:
        await queue.add(1)
        worker = Worker("work", handler, connection)
        await worker.pause()
        running = asyncio.create_task(worker.run())
        while not worker.running:
            await asyncio.sleep(0.01)
        print("paused", flush=True)
        await running

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_signal_ends_a_paused_worker(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(program), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=os.environ
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"paused\n"
        process.send_signal(signal.SIGTERM)
        out, err = await process.communicate()
    assert (process.returncode, out) == (0, b""), err.decode()


@pytest.fixture
def states() -> Iterator[EngineStates]:
    machine = EngineStates()
    yield machine
    machine.teardown()


def test_a_job_that_came_with_a_wake_up_goes_back_although_the_claim_that_was_to_take_it_fails(
    states: EngineStates,
) -> None:
    states.start(concurrency=2, backlog=1)
    states.all_calls_are_answered()
    states.a_handler_ends(which=0, how="returns")
    assert [call.claim for call in states.store.calls] == [2]
    states.add_to_store()
    states.store.bring()
    states.the_worker_is_paused(goes_on=True)
    assert states.store.brought
    states.a_call_is_answered(which=0, how="away")
    states.loop.pass_time(40.0)
    states.all_calls_are_answered()
    assert (states.store.brought, states.store.waiting) == ([], ["job 2"])
