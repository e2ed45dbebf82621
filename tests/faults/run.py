"""One run: a fleet under load, a fault at random points, the end of the load, rest, and the checker's verdict."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from awaiting import eventually
from faults.case import FOREIGN, Rest, StoredJob, Vitals
from faults.checker import SOCKETS, THREADS, violations
from faults.fleet import Fleet, Member
from faults.inject import FAULTS
from faults.kinds import ATTEMPTS
from faults.ledger import Kind, Ledger
from faults.nursery import Nursery
from faults.proxy import Proxy
from faults.scene import Scene
from faults.stores import Store
from jobwire import Job, Queue, State, StoreUnavailable

_DRAINED_WITHIN, _DRAINED_WITHIN_LONG = 150.0, 900.0
_AT_REST_WITHIN = 60.0


@dataclass(frozen=True)
class Plan:
    """What a run does."""

    fault: str
    seed: int
    short: bool = False
    workers: int = 3
    producers: int = 2
    rate: float = 100.0
    """Jobs a second, of each producer."""
    minutes: float = 0.0
    """The fault happens again and again for this long; 0: as often as the fault itself has it."""


@dataclass(frozen=True)
class Figures:
    """Figures of a ledger."""

    acknowledged: int
    refused: int
    """Jobs whose add raised."""
    runs: int
    again: int
    """Runs of a job after one that did not end, or whose outcome did not count."""
    lost: int
    """Outcomes that the store refused because their claim was lost."""

    @classmethod
    def of(cls, ledger: Ledger) -> Figures:
        counted = Counter(entry.kind for entry in ledger.refresh())
        jobs = len({entry.job for entry in ledger.of(Kind.STARTED)})
        verdicts = Counter(entry.detail for entry in ledger.of(Kind.VERDICT))
        runs = counted[Kind.STARTED]
        again = max(0, runs - jobs - verdicts["retried"])
        return cls(counted[Kind.ACKNOWLEDGED], counted[Kind.REFUSED], runs, again, verdicts["lost"])


@dataclass(frozen=True)
class Report:
    """What a run came to."""

    protocol: str
    fault: str
    seed: int
    times: int
    figures: Figures
    memory: tuple[int, int]
    """Megabytes of a worker that lived through everything, after its first jobs and in the end."""
    seconds: float
    violations: tuple[str, ...]


async def run(store: Store, nursery: Nursery, folder: Path, plan: Plan) -> Report:
    """Runs one fault on one store. `folder` gets the ledger and the logs of all processes."""
    began = time.monotonic()
    fault = FAULTS[plan.fault]()
    ledger = Ledger(folder)
    chance = random.Random(plan.seed)
    least = fault.times_short if plan.short else fault.times
    times, until = 0, began + 60 * plan.minutes
    found: list[str] = []
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(Proxy(store.port)) if fault.through_proxy else None
        queue = await stack.enter_async_context(Queue("work", store.url))
        settings: dict[str, Any] = {**store.prepare(transactions=fault.transactions), **fault.worker_settings(store)}
        url = store.url if proxy is None else store.through(proxy.port)
        fleet = Fleet(store, nursery, folder, url, settings)
        stack.callback(fleet.kill_all)
        lease = settings.get("lease", 2.0)
        scene = Scene(store, fleet, ledger, chance, proxy, lease, plan.short)
        for _ in range(plan.workers if fault.survivor else 1):
            fleet.start_worker()
        if fault.peers and (store.peers_jobs_are_recovered or not fault.outage):
            fleet.start_peer()
        try:
            await fault.prepare(scene)
            for _ in range(1 if plan.short else plan.producers):
                fleet.start_producer(40.0 if plan.short else plan.rate, extra=fault.job_extra(store))
            await scene.progress(30 if plan.short else 300)
            survivor = fleet.workers[0]
            before = survivor.vitals
            try:
                while time.monotonic() < until if plan.minutes else times < least:
                    times += 1
                    await scene.progress(chance.randrange(5, 30))
                    await fault.inject(scene)
                await scene.progress(20)
            except AssertionError as error:
                found.append(f"no progress: {error}")
        finally:  # other runs use the same server
            await fault.undo(scene)
        stuck = await fleet.stop(*fleet.producers)
        found += await _drain(queue, _DRAINED_WITHIN if plan.short else _DRAINED_WITHIN_LONG)
        await _settles(lambda: not store.unfinished())
        after = await _calm(survivor, before) if fault.survivor else before
        stuck += await fleet.stop(*fleet.workers)
        found += [f"{name} did not end by SIGTERM" for name in stuck if not name.startswith("node")]
        jobs, counts = await _stored(queue)
        await queue.close()
    gc.collect()  # pymongo leaves a socket to the garbage collector when a connect is cancelled
    rest = Rest(
        jobs,
        counts,
        await _left(lambda: store.residue(jobs)),
        await _left(store.connections),
        {survivor.name: (before, after)} if fault.survivor else {},
        fault.foreign,
        fault.promises,
    )
    found += violations(ledger.refresh(), rest)
    return Report(
        store.protocol,
        plan.fault,
        plan.seed,
        times,
        Figures.of(ledger),
        (before.memory >> 20, after.memory >> 20),
        time.monotonic() - began,
        tuple(found),
    )


async def _drain(queue: Queue, within: float) -> list[str]:
    """Waits until every job has ended, which two looks must agree on: a job may change its state during one."""
    seen: Mapping[State, int] = {}
    looks = 0

    async def drained() -> bool:
        nonlocal seen, looks
        with suppress(StoreUnavailable):
            seen = await queue.counts()
            looks = 0 if any(number for state, number in seen.items() if not state.finished) else looks + 1
        await asyncio.sleep(0.05)
        return looks > 1

    try:
        await eventually(drained, within=within)
    except AssertionError:
        return [f"not drained within {within:g} s: { ({str(state): n for state, n in seen.items() if n}) }"]
    return []


async def _calm(worker: Member, before: Vitals) -> Vitals:
    """Returns what the worker has in use when it idles again: a pool closes its idle connections after a while."""
    await _settles(lambda: _is_calm(worker.vitals, before))
    return worker.vitals


def _is_calm(now: Vitals, before: Vitals) -> bool:
    return now.threads <= before.threads + THREADS and now.sockets <= before.sockets + SOCKETS


async def _left(look: Callable[[], list[str]]) -> list[str]:
    """Returns what is still there when it has had its time to go: keys with an expiry of some seconds, connections
    that were closed just now, that of the look before this one among them."""
    found: list[str] = []

    def gone() -> bool:
        found[:] = look()
        return not found

    await _settles(gone)
    return found


async def _settles(look: Callable[[], bool]) -> None:
    """Waits until the condition holds, or for as long as it may take."""
    until = time.monotonic() + _AT_REST_WITHIN
    while not look() and time.monotonic() < until:
        await asyncio.sleep(0.1)


async def _stored(queue: Queue) -> tuple[list[StoredJob], dict[str, int]]:
    jobs = [_stored_job(job) for state in State async for job in queue.iter_jobs(state)]
    return jobs, {str(state): number for state, number in (await queue.counts()).items() if number}


def _stored_job(job: Job) -> StoredJob:
    data: Any = job.data
    n = data["n"] if isinstance(data, dict) and "kind" in data else FOREIGN
    result: Any = job.result
    token = result.get("token", "") if isinstance(result, dict) else (job.error or "").partition("must fail: ")[2]
    return StoredJob(job.id, n, str(job.state), token, job.attempts_made, job.attempts or ATTEMPTS, job.error)
