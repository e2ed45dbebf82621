"""The runs in the lake beside the log that a handler keeps itself, on every protocol."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from awaiting import eventually
from jobwire import ActiveJob, Backoff, Connection, NewJob, Queue, Worker, connect, urls
from jobwire.boundary import ConsumerSettings
from jobwire.native import BridgeMQWorker, MonqueWorker, PgBossWorker
from jobwire.pipeline.history.silver_attempts import attempts
from jobwire.pipeline.history.silver_events import silver_events
from jobwire.pipeline.history.silver_jobs import silver_jobs
from jobwire.pipeline.lake.schemas import BRONZE_EVENTS, SNAPSHOTS
from jobwire.pipeline.spark.session import for_little
from jobwire.pipeline.stores.boundary import Wanted, open_store
from pipeline.literal_rows import frame

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]

KINDS = ("good", "again", "bad") * 3
RUNS = {"good": 1, "again": 3, "bad": 3}
RESOLUTION = 0.002
"""Seconds. Stores keep milliseconds, cut or rounded."""


STALLING = "left by a dead worker"


class NoStock(Exception):
    """The error of a first and of a third attempt."""


class TooSlow(Exception):
    """The error of a second attempt."""


class Case(NamedTuple):
    protocol: str
    queue: str
    native: object | None
    remembers: bool = True
    behind: float = 0.0
    """Seconds by which an end may be too early. It is written by the server's clock as the worker knows it from
    replies, which may have come late."""
    backoff: float = 0.0
    """Seconds between two attempts: more than an end may be too early, so that waits since the adding are found."""
    names_worker: tuple[bool, bool] = (True, True)
    """The store names the worker of a job's earlier runs, and that of its last one."""
    stalls: bool = False
    """The run that a dead worker has begun is known after its job has ended."""


CASES = {
    "BullMQ": Case("bullmq", "mail", None, stalls=True, names_worker=(False, True)),
    "Monque": Case("monque", "mail", MonqueWorker(max_retries=3, base_retry_interval=0.02)),
    "pg-boss": Case("pgboss", "mail", PgBossWorker(remember_attempts=3600), stalls=True, names_worker=(True, False)),
    "BridgeMQ": Case("bridgemq", "mail", BridgeMQWorker(remember_attempts=3600), behind=1.0, backoff=1.5),
    "forgetful pg-boss": Case("pgboss", "plain", None, remembers=False, names_worker=(False, False)),
    "forgetful BridgeMQ": Case("bridgemq", "plain", None, remembers=False, behind=1.0, backoff=1.5),
}


class Run(NamedTuple):
    """A run as the handler saw it, in seconds since 1970."""

    job: str
    began: float
    ended: float
    error: str | None


@dataclass
class Log:
    """All that the program knows itself."""

    kinds: dict[str, str] = field(default_factory=dict[str, str])
    adding: tuple[float, float] = (0.0, 0.0)
    runs: list[Run] = field(default_factory=list[Run])
    stalling: str | None = None
    """The job whose first worker died."""
    worker: str = "w1"

    async def handle(self, job: ActiveJob) -> Mapping[str, bool]:
        began = time.time()
        await asyncio.sleep(0.005)
        failed = job.data == "bad" or (job.data == "again" and job.attempts_made < 2)
        kind = (NoStock, TooSlow)[job.attempts_made % 2]
        self.runs.append(Run(job.id, began, time.time(), kind.__name__ if failed else None))
        if failed:
            raise kind(f"{job.attempts_made} of 17 left")
        return {"sent": True}

    def of(self, job: str) -> list[Run]:
        return [run for run in self.runs if run.job == job]


async def lived(connection: Connection, case: Case) -> Log:
    """Runs the jobs of a case to their ends. A worker that dies has begun with one of them."""
    log = Log()
    backoff = Backoff.fixed(case.backoff)
    options: dict[str, Any] = {} if case.protocol == "monque" else {"attempts": 3, "backoff": backoff}
    queue = Queue(case.queue, connection)
    if case.remembers:
        stalling = await queue.add(STALLING, **options)
        dead = connection.backend.consumer(ConsumerSettings(case.queue, "dead", lease=0.3, native=case.native))
        assert [claim.job.id for claim in (await dead.settle([], claim=1)).claims] == [stalling.id]
        log.stalling = stalling.id
    begin = time.time()
    added = await queue.add_many([NewJob(kind, **options) for kind in KINDS])
    log.adding = (begin, time.time())
    log.kinds = {job.id: kind for job, kind in zip(added, KINDS, strict=True)}
    expected = sum(RUNS[kind] for kind in KINDS) + case.remembers
    options = {"concurrency": 3, "name": "w1", "native": case.native, "recover_every": 0.2}
    async with Worker(case.queue, log.handle, connection, **options) as worker:
        stats = worker.stats
        log.worker = worker.id if case.protocol == "monque" else "w1"  # Monque stores ids
        await eventually(lambda: stats.completed + stats.failed + stats.retried == expected, within=120)
    return log


def host(name: str) -> str:
    """Returns what tells the stores of the cases apart."""
    return name.replace(" ", "-")


def read(url: str, case: Case, name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the rows that one ingest would put into bronze: events, and jobs."""
    store = open_store(urls.parse(url), case.queue, url.replace("://", f"://{host(name)}.", 1))
    now = datetime.now(UTC)
    try:
        start = store.first_offset()
        parts = store.plan_events(start, store.latest_offset(start, None))
        events = [row for part in parts for batch in store.read_events(part) for row in batch.to_pylist()]
        wanted = Wanted()
        jobs = [
            row
            for part in store.plan_jobs(wanted, 1)
            for batch in store.read_jobs(part, wanted)
            for row in batch.to_pylist()
        ]
    finally:
        store.close()
    return [row | {"ingested_at": now, "day": now.date()} for row in events], [row | {"seen_at": now} for row in jobs]


@dataclass(frozen=True)
class Found:
    logs: Mapping[str, Log]
    runs: Mapping[str, list[Any]]


@pytest.fixture(scope="module")
def found(spark: Any, shared_place: Callable[[str], str]) -> Found:
    urls_of = {case.protocol: shared_place(case.protocol) for case in CASES.values()}
    logs: dict[str, Log] = {}

    async def live() -> None:
        for name, case in CASES.items():
            async with connect(urls_of[case.protocol]) as connection:
                logs[name] = await lived(connection, case)

    asyncio.run(live())
    events: list[dict[str, Any]] = []
    jobs: list[dict[str, Any]] = []
    for name, case in CASES.items():
        of_events, of_jobs = read(urls_of[case.protocol], case, name)
        events += of_events
        jobs += of_jobs
    silver = silver_events(frame(spark, BRONZE_EVENTS, events).coalesce(1))
    with for_little(spark, 0):
        runs = attempts(silver, silver_jobs(frame(spark, SNAPSHOTS, jobs).coalesce(1), silver)).collect()
    runs.sort(key=lambda run: run["started_at"])
    return Found(logs, {name: [run for run in runs if f"//{host(name)}." in run["store"]] for name in CASES})


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.remembers])
def test_runs_are_those_of_the_handlers_own_log(found: Found, name: str) -> None:
    log, runs = found.logs[name], [run for run in found.runs[name] if run["outcome"] != "stalled"]

    assert Counter(run["job_id"] for run in runs) == Counter(run.job for run in log.runs)
    assert sum(run["forgotten"] for run in runs) == 0
    for job in log.kinds:
        own, known = log.of(job), [run for run in runs if run["job_id"] == job]
        assert [run["attempt"] for run in known] == [1, 2, 3][: len(own)]
        assert [run["outcome"] for run in known] == ["failed" if run.error else "completed" for run in own]
        assert [run["error_class"] for run in known] == [run.error for run in own]
        for before, mine, run in zip([None, *own], own, known, strict=False):
            check_times(log, before, mine, run, CASES[name])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.remembers])
def test_a_run_of_a_dead_worker_has_stalled_and_the_next_one_is_that_of_the_log(found: Found, name: str) -> None:
    log = found.logs[name]
    [own] = log.of(str(log.stalling))

    *stalled, last = [run for run in found.runs[name] if run["job_id"] == log.stalling]

    assert [(run["outcome"], run["run_ms"]) for run in stalled] == [("stalled", None)] * CASES[name].stalls
    assert [run["attempt"] for run in (*stalled, last)] == [1, 2][: len(stalled) + 1]
    assert (last["outcome"], last["error_class"]) == ("completed", None)
    assert last["started_at"].timestamp() <= own.began + RESOLUTION
    assert all(run["started_at"] < last["ready_at"] <= last["started_at"] for run in stalled)


@pytest.mark.parametrize("name", CASES)
def test_runs_have_the_worker_that_ran_them_where_the_store_names_it(found: Found, name: str) -> None:
    log, runs = found.logs[name], [run for run in found.runs[name] if run["outcome"] != "stalled"]

    for job in log.kinds:
        earlier, last = ((log.worker if named else None) for named in CASES[name].names_worker)
        workers = [run["worker"] for run in runs if run["job_id"] == job]
        assert workers == [*[earlier] * (len(workers) - 1), last]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.remembers])
def test_runs_that_a_store_forgets_are_counted_exactly_and_the_others_are_those_of_the_log(
    found: Found, name: str
) -> None:
    log, runs = found.logs[name], found.runs[name]

    assert sorted(run["job_id"] for run in runs) == sorted(log.kinds)
    assert sum(run["forgotten"] for run in runs) == len(log.runs) - len(runs) == 12
    for run in runs:
        own = log.of(run["job_id"])
        assert (run["attempt"], run["forgotten"]) == (len(own), len(own) - 1)
        check_times(log, own[-2] if len(own) > 1 else None, own[-1], run, CASES[name])


def check_times(log: Log, before: Run | None, mine: Run, run: Any, case: Case) -> None:
    """A store's times lie around those of the handler: it is claimed before it begins, and settled after its end."""
    behind = case.behind
    ready, started, ended = (run[name].timestamp() for name in ("ready_at", "started_at", "ended_at"))
    assert started <= mine.began + RESOLUTION
    assert ended >= mine.ended - RESOLUTION - behind
    assert run["run_ms"] >= (mine.ended - mine.began - RESOLUTION - behind) * 1000
    earliest, latest = log.adding if before is None else (before.ended + case.backoff - behind, started)
    assert earliest - RESOLUTION <= ready <= latest + RESOLUTION
    assert run["wait_ms"] == pytest.approx(max(0, started - ready) * 1000, abs=1)


@pytest.mark.parametrize("name", CASES)
def test_an_error_has_one_class_on_all_protocols(found: Found, name: str) -> None:
    failed = {run["attempt"]: run["error_class"] for run in found.runs[name] if run["outcome"] == "failed"}

    kept = {1: "NoStock", 2: "TooSlow", 3: "NoStock"}
    assert failed == (kept if CASES[name].remembers else {3: "NoStock"})
