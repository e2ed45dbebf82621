"""kill -9 of all that a mover started, at random moments; then the command is given again, and jobs are counted."""

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.stores.boundary import open_store
from jobwire.sync import Queue
from jobwire.urls import parse
from pipeline.move_samples import filled, payload, samples, seen

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark-cluster"),
    pytest.mark.usefixtures("quick_spark"),
    pytest.mark.timeout(900),
]
Place = Callable[[str], str]
CHILD = Path(__file__).with_name("mover_child.py")
COUNT = 6000


class Mover:
    """One command, given as often as it takes."""

    def __init__(self, command: str, seed: int, **given: Any) -> None:
        self._line = [sys.executable, str(CHILD), command, json.dumps(given)]
        self._random = random.Random(seed)
        self.killed_in: list[str] = []

    def killed(self, stage: str) -> None:
        """Run until the stage begins, and a little longer; then no process of it is left."""
        child = self._started()
        try:
            reached = self._read_until(child, stage)
            if reached:
                select.select([], [], [], self._random.uniform(0, 0.6))
                self.killed_in.append(stage)
        finally:
            self._kill(child)

    def completed(self) -> None:
        child = self._started()
        try:
            assert self._read_until(child, "end"), "the mover ended before its time"
            assert child.wait(60) == 0
        finally:
            self._kill(child)

    def _started(self) -> subprocess.Popen[str]:
        env = {**os.environ, "PYTHONUNBUFFERED": "1"}
        return subprocess.Popen(self._line, stdout=subprocess.PIPE, text=True, start_new_session=True, env=env)

    def _read_until(self, child: subprocess.Popen[str], stage: str) -> bool:
        assert child.stdout is not None
        return any(line.startswith(f"{stage}:") for line in child.stdout)

    def _kill(self, child: subprocess.Popen[str]) -> None:
        """Spark's Python workers are in a group of their own, but in the child's session."""
        while alive := _session(child.pid):
            for process in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            _wait_until(lambda before=alive: not before & _session(child.pid))
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _session(leader: int) -> set[int]:
    """The processes of a session that have not ended."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader and state != "Z":
                    found.add(int(entry.name))
    return found


def _wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_load_that_is_killed_again_and_again_adds_every_row_once(place: Place, lake: str, tmp_path: Path) -> None:
    url, path = place("bullmq"), tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"n":{number % 5000}}}\n' for number in range(COUNT)), encoding="utf-8")
    mover = Mover("load", 7, lake=lake, path=str(path), url=url, hold=True)

    for stage in ("check", "add", "verify"):
        mover.killed(stage)
    mover.completed()

    with Queue("mail", url) as queue:
        counts, paused = queue.counts(), queue.admin.paused()
    found = Counter(job["n"] for job in seen(url, "mail").ready)
    assert mover.killed_in == ["check", "add", "verify"]
    assert counts["waiting"] == COUNT
    assert found == Counter(number % 5000 for number in range(COUNT))
    assert not paused


@pytest.mark.parametrize(
    ("source", "target", "stages"),
    [
        ("bullmq", "pgboss", ["plan", "copy", "verify", "cut over"]),
        (
            "pgboss",
            "bullmq",
            ["copy", "cut over"],
        ),  # the two in which it writes: the others are the same for all stores
    ],
    ids=["bullmq-pgboss", "pgboss-bullmq"],
)
def test_a_move_that_is_killed_at_every_step_ends_with_each_job_once_in_the_target_and_none_in_the_source(
    source: str, target: str, stages: list[str], place: Place, lake: str
) -> None:
    here, there = place(source), place(target)
    filled(here, "mail", samples(source, COUNT))
    before = seen(here, "mail")
    mover = Mover("move", 11, lake=lake, url=here, to=there)

    for stage in stages:
        mover.killed(stage)
    mover.completed()

    after = seen(there, "mail")
    assert mover.killed_in == stages
    assert [job["n"] for job in after.ready] == [job["n"] for job in before.ready]
    assert {job["n"]: job for job in after.ready} == {n: payload(n) for n in range(COUNT) if n % 5 != 4}
    assert set(after.due) == set(before.due)
    assert (seen(here, "mail").ready, seen(here, "mail").due) == ([], {})


def test_an_archive_that_is_killed_at_every_step_loses_nothing_and_doubles_nothing(
    place: Place, lake: str, spark: Any
) -> None:
    url = place("bullmq")
    ids = _finished(url, COUNT)
    mover = Mover("archive", 13, lake=lake, url=url)

    for stage in ("read", "archive", "verify", "purge"):
        mover.killed(stage)
        rows = [row["id"] for row in Lake(lake).table(spark, "archive").select("id").collect()]
        with Queue("mail", url) as queue:
            left = queue.counts()["completed"]
        assert len(rows) == len(set(rows))
        assert len(rows) + left >= COUNT, f"a job is neither in the queue nor in the lake after {stage}"
    mover.completed()

    rows = [row["id"] for row in Lake(lake).table(spark, "archive").select("id").collect()]
    with Queue("mail", url) as queue:
        left = queue.counts()["completed"]
    assert (sorted(rows), left) == (sorted(ids), 0)


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
