"""How many jobs a second one worker of concurrency 100 runs, with and without routing, beside a spec-style claimer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from tests.backends.bridgemq.peer import Peer

from jobwire import ActiveJob, NewJob, Queue, Target, Worker
from jobwire.native import BridgeMQWorker

CONCURRENCY = 100
CHUNK = 1000
KIND = "mail"


@dataclass(frozen=True)
class Setting:
    """What waits and who works. `targets` are dealt out to the jobs in turn; None: for everyone."""

    name: str
    title: str
    targets: Sequence[Target | None] = (None,)
    spec_style: bool = False


_MINE = [Target(stack=("py",)), Target(capabilities=("gpu", "mail")), Target(region=("eu",)), Target(server="w1")]
SETTINGS = [
    Setting("plain", "jobs for everyone"),
    Setting("one_route", "jobs of one route (stack and capabilities)", [Target(stack=("py",), capabilities=("gpu",))]),
    Setting("five_routes", "jobs of five routes in turn", [None, *_MINE]),
    Setting("spec_style", "spec-style script, one job a call, 100 callers", spec_style=True),
]
NATIVE = BridgeMQWorker(server_id="w1", stack="py", capabilities=["gpu", "mail"], region="eu")


class Finish:
    """An observer that tells when so many jobs have been settled."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs
        self.done = asyncio.Event()

    def started(self, *_: Any) -> None: ...

    def settled(self, *_: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.done.set()


async def run(server: str, setting: Setting, jobs: int) -> dict[str, float]:
    """One race on an empty server: jobs a second added and run, and what each cost inside the server and here."""
    async with Redis.from_url(server) as redis:
        await redis.flushall()
        url = f"bridgemq+{server}"
        async with Queue(KIND, url) as queue:
            targets = setting.targets
            began = time.perf_counter()
            for first in range(0, jobs, CHUNK):
                numbers = range(first, min(first + CHUNK, jobs))
                await queue.add_many([NewJob({"n": n}, target=targets[n % len(targets)]) for n in numbers])
            adding = time.perf_counter() - began
        await redis.config_resetstat()
        began, cpu = time.perf_counter(), time.process_time()
        if setting.spec_style:
            await _spec_style(redis, jobs)
        else:
            await _ours(url, jobs)
        took, spent = time.perf_counter() - began, time.process_time() - cpu
        stats = await redis.info("commandstats")
        scripts = [stats[name] for name in ("cmdstat_evalsha", "cmdstat_eval") if name in stats]
        assert await redis.llen("bridge:jobs:waiting") == 0
    return {
        "added": jobs / adding,
        "run": jobs / took,
        "server_us": sum(one["usec"] for one in scripts) / jobs,
        "client_us": spent * 1e6 / jobs,
        "calls": sum(one["calls"] for one in scripts),
    }


async def _ours(url: str, jobs: int) -> None:
    finish = Finish(jobs)

    async def handle(job: ActiveJob) -> None:
        return None

    worker = Worker(KIND, handle, url, concurrency=CONCURRENCY, observers=[finish], native=NATIVE)
    running = asyncio.create_task(worker.run(signals=False))
    await finish.done.wait()
    await worker.stop(now=True)
    await running


async def _spec_style(redis: Redis, jobs: int) -> None:
    async def claimer(number: int) -> int:
        peer, done = Peer(redis, "bridge").fellow(f"w{number}", stack="py"), 0
        while job := await peer.claim():
            await peer.finish(job)
            done += 1
        return done

    done = await asyncio.gather(*(claimer(number) for number in range(CONCURRENCY)))
    assert sum(done) == jobs
