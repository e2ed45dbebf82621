"""The same code on a laptop's Spark, on a cluster, and on the other side of Spark Connect gives the same numbers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from awaiting import eventually
from jobwire import ActiveJob, NewJob, Queue, State, Worker, sync
from jobwire.pipeline.reach import store_name
from jobwire.pipeline.stores import open_store
from jobwire.urls import parse
from pipeline.cluster_slice import QUEUE, WRITTEN
from pipeline.spark_servers import Started, connect_server, standalone_cluster, started

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark-cluster"), pytest.mark.timeout(900)]

MODES = ("local", "standalone", "connect")
FINISHED, WAITING = 280, 20
SLICE = Path(__file__).with_name("cluster_slice.py")
_CONF = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
_STANDALONE = {
    **_CONF,
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    # Nothing begins before both executors are there.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "240s",
}


class Outcome:
    """What the slice counted in one mode, and what the stores have to say about it."""

    def __init__(self, figures: dict[str, Any], sessions: list[int], targets: dict[str, str]) -> None:
        self.figures = figures
        self.sessions = sessions
        self.targets = targets


@contextmanager
def spark_in(mode: str, folder: Path) -> Iterator[tuple[str, dict[str, str], list[Started]]]:
    """A master, the configuration for it, and where its tasks run; nowhere but in the driver if that is empty."""
    if mode == "local":
        yield "local[2]", _CONF, []
    elif mode == "standalone":
        with standalone_cluster(folder) as cluster:
            yield cluster.url, _STANDALONE, [*cluster.workers]
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
def outcome(
    full: dict[str, str], servers: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Outcome]:
    """The slice in a mode, in a process of its own: run once."""

    @cache
    def run(mode: str) -> Outcome:
        folder = tmp_path_factory.mktemp(mode)
        targets = place(servers)
        for url in targets.values():
            counts_of(url)  # a write needs the place that a first contact makes
        given = json.dumps({"full": full, "empty": targets, "root": str(folder / "lake")})
        with spark_in(mode, folder) as (master, conf, homes):
            line = [sys.executable, str(SLICE), master, json.dumps(conf), given]
            with started(line, folder / "slice.log") as child:
                figures = json.loads(child.told(r"(?m)^FIGURES (.*)$"))
                assert child.process.wait(60) == 0
            return Outcome(figures, sorted(home.session for home in homes or [child]), targets)

    return run


def counts_of(url: str) -> dict[str, int]:
    with sync.Queue(QUEUE, url) as queue:
        return {str(state): count for state, count in queue.counts().items() if count}


def events_of(url: str) -> int:
    """How many events the store tells of, read without Spark."""
    store = open_store(parse(url), QUEUE, "here")
    try:
        start = store.first_offset()
        parts = store.plan_events(start, store.latest_offset(start, None))
        return len({one for part in parts for batch in store.read_events(part) for one in batch["id"].to_pylist()})
    finally:
        store.close()


@pytest.mark.parametrize("mode", MODES)
def test_explore(mode, outcome, full):
    o = outcome(mode)
    print(mode, json.dumps(o.figures, indent=1), o.sessions)
    print([ (counts_of(u), events_of(u)) for u in full.values()], [counts_of(u) for u in o.targets.values()])
