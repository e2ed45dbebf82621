"""kill -9 of all that movers started, at random moments of each step; then the commands are given again, and jobs are
counted.

The movers run side by side, each with stores and a lake of its own, and are killed together: one process per round.
The commands that complete their work run on the Spark of the other tests: nothing kills them.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import redis

from jobwire import NewJob
from jobwire.pipeline.lake import pointers
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import read_table
from jobwire.pipeline.spark.progress import silent
from jobwire.pipeline.stores.boundary import open_store
from jobwire.sync import Queue
from jobwire.urls import parse
from pipeline.move_samples import Seen, filled, payload, samples, seen
from pipeline.mover_child import COMMANDS
from pipeline.spark_servers import session

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark-movers"),
    pytest.mark.timeout(1800),
]
CHILD = Path(__file__).with_name("mover_child.py")
COUNT = 3000
"""Several portions of every mover: the largest is of 1,000 jobs."""
INGESTED = 1000
"""Jobs that are added before each round in which the ingest is killed."""


@dataclass(frozen=True)
class Round:
    """The step in which each mover is killed, and the longest time that they run on before."""

    stages: dict[str, str]
    at_most: float


ROUNDS = (
    Round({"load": "check", "bullmq-pgboss": "plan", "archive": "read", "ingest": "ingesting"}, 3),
    # A move from pg-boss is killed in the two steps in which it writes: the others are the same for all stores.
    Round(
        {"load": "add", "bullmq-pgboss": "copy", "pgboss-bullmq": "copy", "archive": "archive", "ingest": "ingesting"},
        1,
    ),
    Round({"load": "verify", "bullmq-pgboss": "verify", "archive": "verify", "ingest": "ingesting"}, 2),
    Round({"bullmq-pgboss": "cut over", "pgboss-bullmq": "cut over", "archive": "purge"}, 0.6),
)
MOVES = ("bullmq-pgboss", "pgboss-bullmq")


@dataclass
class Mover:
    """One command, given as often as it takes."""

    given: dict[str, Any]
    before: Any = None
    killed_in: list[str] = field(default_factory=list[str])
    found: Any = None
    """The answer of the run that was not killed."""

    @property
    def url(self) -> str:
        return self.given["url"]

    @property
    def lake(self) -> str:
        return self.given["lake"]


@dataclass(frozen=True)
class Movers:
    """All movers by name, and how many jobs of the archive were in the lake (once or more) and in the queue after each
    kill."""

    named: dict[str, Mover]
    archived: list[tuple[list[str], int]] = field(default_factory=list[tuple[list[str], int]])

    def killed(self, one: Round, moment: random.Random) -> None:
        """Runs movers until each is in its step, and a little longer, at most to the end of the step. Then no process
        of theirs is left."""
        with self._started(one.stages) as child:
            waiting = set(one.stages)
            while waiting:
                word, name = _line(child)
                assert word == "reached", f"{name} ended before its step {one.stages[name]!r}"
                waiting.remove(name)
            _go(child)
            select.select([], [], [], moment.uniform(0, one.at_most))
        for name, stage in one.stages.items():
            self.named[name].killed_in.append(stage)

    def completed(self, spark: Any) -> None:
        for mover in self.named.values():
            mover.found = COMMANDS[mover.given["command"]](spark, mover.given, silent)

    @contextlib.contextmanager
    def _started(self, stages: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
        given = {name: {**self.named[name].given, "stop": stage} for name, stage in stages.items()}
        child = subprocess.Popen(
            [sys.executable, str(CHILD), json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield child
        finally:
            _kill(child)


def _line(child: subprocess.Popen[str]) -> list[str]:
    assert child.stdout is not None
    line = child.stdout.readline()
    assert line, "the movers ended before their time"
    return line.split()


def _go(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def _kill(child: subprocess.Popen[str]) -> None:
    """Kills the child's session: Spark's Python workers are in a group of their own, but in it."""
    while alive := session(child.pid):
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        _wait_until(lambda before=alive: not before & session(child.pid))
    child.wait()
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        pipe.close()


def _wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture(scope="module")
def movers(spark: Any, shared_place: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Movers:
    """The movers, killed in every step and then completed."""
    folder = tmp_path_factory.mktemp("killed")
    path = folder / "rows.jsonl"
    path.write_text("".join(f'{{"n":{number % 2500}}}\n' for number in range(COUNT)), encoding="utf-8")
    given: dict[str, dict[str, Any]] = {
        "load": {"command": "load", "url": shared_place("bullmq"), "path": str(path)},
        "archive": {"command": "archive", "url": shared_place("bullmq")},
        "ingest": {"command": "ingest", "url": shared_place("bullmq")},
    }
    for name in MOVES:
        source, target = name.split("-")
        given[name] = {"command": "move", "url": shared_place(source), "to": shared_place(target)}
    all_of_them = Movers({name: Mover({**each, "lake": str(folder / name)}) for name, each in given.items()})
    named = all_of_them.named
    for name in MOVES:
        filled(named[name].url, "mail", samples(name.split("-")[0], COUNT))
        named[name].before = seen(named[name].url, "mail")
    named["archive"].before = _finished(named["archive"].url, COUNT)

    moment = random.Random(7)
    for one in ROUNDS:
        if "ingest" in one.stages:
            filled(named["ingest"].url, "mail", [NewJob({"n": number}) for number in range(INGESTED)])
        all_of_them.killed(one, moment)
        all_of_them.archived.append((_archived(named["archive"].lake), _completed(named["archive"].url)))
    all_of_them.completed(spark)
    return all_of_them


@pytest.mark.parametrize("name", ["load", "archive", "ingest", *MOVES])
def test_every_mover_was_killed_in_each_of_its_steps(name: str, movers: Movers) -> None:
    assert movers.named[name].killed_in == [one.stages[name] for one in ROUNDS if name in one.stages]
    assert len(movers.named[name].killed_in) >= 2


def test_a_load_that_is_killed_again_and_again_adds_every_row_once(movers: Movers) -> None:
    url = movers.named["load"].url

    with Queue("mail", url) as queue:
        counts, paused = queue.counts(), queue.admin.paused()
    found = Counter(job["n"] for job in seen(url, "mail").ready)
    assert counts["waiting"] == COUNT
    assert found == Counter(number % 2500 for number in range(COUNT))
    assert not paused


@pytest.mark.parametrize("name", MOVES)
def test_a_move_that_is_killed_at_every_step_ends_with_each_job_once_in_the_target_and_none_in_the_source(
    name: str, movers: Movers
) -> None:
    mover = movers.named[name]
    before: Seen = mover.before

    after = seen(mover.given["to"], "mail")
    assert [job["n"] for job in after.ready] == [job["n"] for job in before.ready]
    assert {job["n"]: job for job in after.ready} == {n: payload(n) for n in range(COUNT) if n % 5 != 4}
    assert set(after.due) == set(before.due)
    assert (seen(mover.url, "mail").ready, seen(mover.url, "mail").due) == ([], {})


def test_an_archive_that_is_killed_at_every_step_loses_nothing_and_doubles_nothing(movers: Movers) -> None:
    mover = movers.named["archive"]

    for rows, left in movers.archived:
        assert len(rows) == len(set(rows))
        assert len(rows) + left >= COUNT, "a job is neither in the queue nor in the lake"
    assert len(movers.archived) == len(ROUNDS)
    assert (sorted(_archived(mover.lake)), _completed(mover.url)) == (sorted(mover.before), 0)


def test_an_ingest_that_is_killed_again_and_again_takes_in_every_event_once(
    movers: Movers, redis_client: redis.Redis
) -> None:
    mover = movers.named["ingest"]

    there = redis_client.xlen(f"{mover.url.partition('prefix=')[2]}:mail:events")
    assert there == 6 * INGESTED
    assert mover.found == {"rows": there, "ids": there}
    assert read_table(mover.lake, "silver/jobs").num_rows == 3 * INGESTED


def _archived(lake: str) -> list[str]:
    """The ids in the table `archive`, read without Spark."""
    if pointers.load(LakeFiles(lake), "archive") is None:
        return []
    return read_table(lake, "archive")["id"].to_pylist()


def _completed(url: str) -> int:
    with Queue("mail", url) as queue:
        return queue.counts()["completed"]


def _finished(url: str, count: int) -> list[str]:
    """Completed jobs, put there as an archive's restore would."""
    import pyarrow as pa

    from jobwire.pipeline.lake.schemas import JOBS

    ids = [f"job-{number}" for number in range(count)]
    now = int(time.time() * 1_000_000) - 60_000_000
    given: dict[str, Any] = {
        "store": [url] * count,
        "queue": ["mail"] * count,
        "id": ids,
        "name": ["mail"] * count,
        "state": ["completed"] * count,
        "payload": [f'{{"n":{number}}}' for number in range(count)],
        "result": ['{"ok":true}'] * count,
        "created_at": [now - 1_000_000] * count,
        "started_at": [now - 500_000] * count,
        "finished_at": [now] * count,
        "attempts": [1] * count,
        "attempts_made": [1] * count,
    }
    arrays = [
        pa.array(given.get(name, [None] * count), kind) for name, kind in zip(JOBS.names, JOBS.arrow.types, strict=True)
    ]
    store = open_store(parse(url), "mail", "here")
    try:
        assert store.put_finished(pa.record_batch(arrays, schema=JOBS.arrow)) == count
    finally:
        store.close()
    return ids
