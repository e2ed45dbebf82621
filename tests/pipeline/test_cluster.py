"""The same code on a laptop's Spark, on a cluster, and on the other side of Spark Connect gives the same numbers. A
fleet on a cluster that loses an executor loses no job, by a ledger outside of the system.

The latter with more jobs: `JOBWIRE_FLEET_JOBS=20000 pytest tests/pipeline/test_cluster.py -k killed`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from awaiting import eventually
from jobwire import ActiveJob, NewJob, Queue, State, Worker, sync
from jobwire.pipeline.lake.lake import BY_DAY, SUMMARIES
from jobwire.pipeline.lake.pointers import read_table
from jobwire.pipeline.stores.address import store_name
from jobwire.pipeline.stores.boundary import open_store
from jobwire.urls import parse
from pipeline.cluster_slice import MOVED, QUEUE, WORKED, WRITTEN, run_slice
from pipeline.spark_servers import (
    STANDALONE,
    Cluster,
    Started,
    awaited,
    connect_server,
    session,
    standalone_cluster,
    started,
)
from pipeline.work_child import FAILS
from pipeline.work_child import QUEUE as BACKLOG

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark-movers"),
    pytest.mark.timeout(1200),
]

MODES = ("local", "standalone", "connect")
FINISHED, WAITING = 280, 20
SLICE = Path(__file__).with_name("cluster_slice.py")
FLEET = Path(__file__).with_name("work_child.py")
BACKLOG_JOBS = int(os.environ.get("JOBWIRE_FLEET_JOBS", "2000"))


@dataclass(frozen=True)
class Outcome:
    """What the slice counted in one mode, the sessions of processes that were there to run its tasks, the stores and
    the lake that it wrote to."""

    figures: dict[str, Any]
    sessions: list[int]
    targets: dict[str, str]
    lake: str


@contextmanager
def spark_in(mode: str, folder: Path, cluster: Future[Cluster]) -> Iterator[tuple[str, dict[str, str], list[Started]]]:
    """A master, the configuration for it, and where its tasks run."""
    if mode == "standalone":
        here = cluster.result()
        yield here.url, STANDALONE, [*here.workers]
    else:
        with connect_server(folder) as (url, server):
            yield url, {}, [server]


def place(servers: dict[str, str]) -> dict[str, str]:
    """A store of each protocol that is nobody else's."""
    name = f"t{uuid.uuid4().hex[:12]}"
    return {
        "bullmq": f"bullmq+{servers['bullmq']}?prefix={name}",
        "pgboss": f"pgboss+{servers['pgboss']}?schema={name}",
    }


@pytest.fixture(scope="module")
def servers(jobwire_valkey: Any, jobwire_postgres: Any) -> dict[str, str]:
    return {"bullmq": jobwire_valkey.url, "pgboss": jobwire_postgres.url}


@pytest.fixture(scope="module")
def full(servers: dict[str, str]) -> dict[str, str]:
    """Stores with 300 jobs: a tenth of those that have finished have failed twice."""
    stores = place(servers)
    for url in stores.values():
        asyncio.run(fill(url))
    return stores


async def fill(url: str) -> None:
    async def handle(job: ActiveJob) -> int:
        if job.data["n"] % 10 == 0:
            raise ValueError(f"{job.data['n']} ends with a zero")
        return int(job.data["n"]) * 2

    async with Queue(QUEUE, url) as queue:

        async def all_finished() -> bool:
            counts = await queue.counts()
            return counts[State.COMPLETED] + counts[State.FAILED] == FINISHED

        await queue.add_many([NewJob({"n": number, "to": "zoë 🙂"}, attempts=2) for number in range(FINISHED)])
        async with Worker(QUEUE, handle, url, concurrency=10):
            await eventually(all_finished, within=120)
        await queue.add_many([NewJob({"n": number}) for number in range(WAITING)])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, quick_spark: None) -> Iterator[Future[Cluster]]:
    """A standalone master with two workers, which comes up while a test does something else. Programs that use it
    follow one another: each takes all cores."""
    with ExitStack() as stack, ThreadPoolExecutor(1) as thread:
        yield thread.submit(lambda: stack.enter_context(standalone_cluster(tmp_path_factory.mktemp("cluster"))))


@pytest.fixture(scope="module")
def outcomes(
    spark: Any,
    full: dict[str, str],
    servers: dict[str, str],
    cluster: Future[Cluster],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Outcome]:
    """The slice in every mode: on this process's own Spark and meanwhile, one after the other, in those of others."""

    def given(folder: Path) -> dict[str, Any]:
        targets = place(servers)
        for url in targets.values():
            counts_of(url)  # a write needs the place that a first contact makes
        return {"full": full, "empty": targets, "root": str(folder / "lake")}

    def elsewhere(mode: str, folder: Path) -> Outcome:
        words = given(folder)
        with spark_in(mode, folder, cluster) as (master, conf, homes):
            line = [sys.executable, str(SLICE), master, json.dumps(conf), json.dumps(words)]
            with started(line, folder / "slice.log") as child:
                figures = json.loads(child.told(r"(?m)^FIGURES (.*)$", within=600))
                assert child.process.wait(60) == 0
            return Outcome(figures, sorted(home.session for home in homes), words["empty"], words["root"])

    with ThreadPoolExecutor(1) as threads:
        folders = {mode: tmp_path_factory.mktemp(mode) for mode in MODES}
        others = {mode: threads.submit(elsewhere, mode, folders[mode]) for mode in MODES if mode != "local"}
        words = given(folders["local"])
        figures = json.loads(json.dumps(run_slice(spark, **words)))
        local = Outcome(figures, [os.getsid(0)], words["empty"], words["root"])
        return {"local": local, **{mode: other.result() for mode, other in others.items()}}


@pytest.fixture(params=MODES)
def outcome(request: pytest.FixtureRequest, outcomes: dict[str, Outcome]) -> Outcome:
    """Of each mode in turn."""
    return outcomes[request.param]


def counts_of(url: str) -> dict[str, int]:
    with sync.Queue(QUEUE, url) as queue:
        return {str(state): count for state, count in queue.counts().items() if count}


def numbers_in(url: str) -> list[int]:
    with sync.Queue(QUEUE, url) as queue:
        return [job.data["n"] for job in queue.jobs(State.WAITING, limit=10 * WRITTEN)]


def rows_of(lake: str, table: str) -> list[str]:
    """The rows of a table without the time of the ingest, which is each lake's own; read without Spark."""
    rows = read_table(lake, table).to_pylist()
    return sorted(repr({name: value for name, value in row.items() if name != "seen_at"}) for row in rows)


def events_of(url: str) -> int:
    """How many events the store tells of, read without Spark."""
    store = open_store(parse(url), QUEUE, "here")
    try:
        start = store.first_offset()
        parts = store.plan_events(start, store.latest_offset(start, None))
        return len({one for part in parts for batch in store.read_events(part) for one in batch["id"].to_pylist()})
    finally:
        store.close()


def test_the_pipeline_counts_what_the_stores_hold(outcome: Outcome, full: dict[str, str]) -> None:
    counts = {protocol: counts_of(url) for protocol, url in full.items()}
    events = {protocol: events_of(url) for protocol, url in full.items()}
    figures = outcome.figures

    for protocol, url in full.items():
        held, store = counts[protocol], store_name(url)
        jobs = sum(held.values())
        assert held == {"completed": 252, "failed": 28, "waiting": WAITING}
        assert figures["read"][protocol] == {**held, "events": events[protocol]}
        assert figures["ingested"][store] == {"events": events[protocol], "jobs": jobs, "error": None}
        assert figures["gold"][store] == {"added": jobs, "completed": held["completed"], "failed": held["failed"]}
    assert figures["rows"]["silver/events"] == sum(events.values())
    assert figures["rows"]["silver/jobs"] == 2 * (FINISHED + WAITING)
    assert figures["rows"]["quarantine"] == 0
    assert figures["runs"] == [["ingest", "ok"], ["build", "ok"], ["work", "ok"], ["move", "ok"]]


def test_rows_become_jobs_that_the_stores_hold(outcome: Outcome) -> None:
    assert outcome.figures["written"] == {"bullmq": WRITTEN, "pgboss": WRITTEN}
    for url in outcome.targets.values():
        assert sorted(numbers_in(url)) == list(range(WRITTEN))


def test_workers_run_as_tasks(outcome: Outcome) -> None:
    worked = outcome.figures["worked"]

    assert worked == {"completed": WORKED, "left": 0, "errors": {}, "outcomes": ["idle", "idle"], "runs": WORKED}


def test_a_queue_is_moved_in_its_order(outcome: Outcome) -> None:
    assert outcome.figures["moved"] == {"equal": MOVED, "left": {}, "in_order": True}


def test_tasks_run_where_the_master_puts_them(outcome: Outcome) -> None:
    assert outcome.figures["sessions"] == outcome.sessions


@pytest.mark.parametrize("table", [*BY_DAY, *SUMMARIES])
def test_tables_have_the_same_rows_whatever_spark_made_them(table: str, outcomes: dict[str, Outcome]) -> None:
    rows = {mode: rows_of(outcome.lake, table) for mode, outcome in outcomes.items()}

    assert rows == dict.fromkeys(MODES, rows["local"])


def executors(cluster: Cluster) -> Iterator[int]:
    """The processes of Java that run the tasks."""
    for worker in cluster.workers:
        for process in session(worker.session):
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{process}/cmdline").read_bytes()
                if b"CoarseGrainedExecutorBackend" in command and b"java" in command.split(b"\0")[0]:
                    yield process


def _is_under_way(ledger: Path) -> bool:
    lines = [line.split() for line in ledger.read_text().splitlines()]
    return len(lines) > BACKLOG_JOBS // 4 and len({line[2] for line in lines if len(line) == 3}) == 2


def test_an_executor_that_is_killed_in_the_middle_loses_no_job(
    cluster: Future[Cluster], servers: dict[str, str], tmp_path: Path
) -> None:
    url = place(servers)["bullmq"]
    ledger, lake = tmp_path / "ledger", str(tmp_path / "lake")
    ledger.touch()
    with sync.Queue(BACKLOG, url) as queue:
        for first in range(0, BACKLOG_JOBS, 1000):
            queue.add_many([NewJob({"n": number}) for number in range(first, min(first + 1000, BACKLOG_JOBS))])

    line = [sys.executable, str(FLEET), cluster.result().url, json.dumps(STANDALONE), url, lake, str(ledger)]
    with started(line, tmp_path / "child.log") as child:
        awaited(lambda: _is_under_way(ledger), "a quarter of the jobs in the ledger, by workers in two processes")
        victim = next(executors(cluster.result()))
        os.kill(victim, signal.SIGKILL)
        at_the_kill = ledger.read_bytes().count(b"\n")
        result = json.loads(child.told(r"(?m)^RESULT (.*)$", within=600))
        assert child.process.wait(60) == 0

    assert at_the_kill < BACKLOG_JOBS
    runs = [line.split() for line in ledger.read_text().splitlines()]
    verdicts = {int(number): verdict for number, verdict, _ in runs}
    assert set(verdicts) == set(range(BACKLOG_JOBS))
    with sync.Queue(BACKLOG, url) as queue:
        held = {state: count for state, count in queue.counts().items() if count}
        final = {
            job.data["n"]: str(state)
            for state in (State.COMPLETED, State.FAILED)
            for job in queue.jobs(state, limit=BACKLOG_JOBS)
        }
    assert held == {State.COMPLETED: BACKLOG_JOBS - BACKLOG_JOBS // FAILS, State.FAILED: BACKLOG_JOBS // FAILS}
    assert final == verdicts
    repeated = [number for number, times in Counter(run[0] for run in runs).items() if times > 1]
    assert len(repeated) <= 10, "only jobs that ran in the lost executor run again"
    assert (result["left"], result["good"], result["lost_workers"]) == (0, True, 1)
    workers = read_table(lake, "work").to_pylist()
    assert Counter(one["outcome"] for one in workers) == {"idle": 2, "lost": 1}
    [replacement] = [one for one in workers if one["task_attempt"] > 0]
    [lost] = [one for one in workers if one["outcome"] == "lost"]
    assert replacement["task"] == lost["task"]
    process = lost["worker"].split("-")[-2]
    assert process in {run[2] for run in runs}
    assert not Path(f"/proc/{process}").exists(), "a worker ends with its executor"
    kept = Counter(run["job_id"] for run in read_table(lake, "work_runs").to_pylist())
    assert set(kept.values()) == {1}
    assert len(kept) + lost["completed"] + lost["failed"] <= BACKLOG_JOBS
