"""Full queues moved from store to store, timed step by step; looked at before and after through the ordinary API."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench.pipeline.memory import Memory
from bench.pipeline.places import CHUNK, session, stores
from tests.pipeline.move_samples import samples, seen

from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.move import move
from jobwire.sync import Queue

PAIRS = (("bullmq", "pgboss"), ("pgboss", "bullmq"), ("monque", "pgboss"), ("bridgemq", "bullmq"))
NIGHTLY = "nightly"


class Watch:
    """Seconds of each stage, as the command tells its progress."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stage, self._since = "pause", time.perf_counter()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        now = time.perf_counter()
        self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now


def measure(folder: Path, jobs: int) -> list[dict[str, Any]]:
    """A row per pair: jobs with priorities in turn, every fifth due later, texts of several alphabets, a schedule."""
    with stores(folder) as places, session(2, brief=True) as spark:  # as the command starts it
        lake = Lake(str(folder / "lake"))
        return [_moved(spark, lake, places, pair, jobs) for pair in PAIRS]


def _moved(spark: Any, lake: Lake, places: dict[str, str], pair: tuple[str, str], jobs: int) -> dict[str, Any]:
    source, target = pair
    here, there, name = places[source], places[target], f"mail-{source}-{target}"
    given = samples(source, jobs)
    with Queue(name, here) as queue:
        for start in range(0, jobs, CHUNK):
            queue.add_many(given[start : start + CHUNK])
    before = seen(here, name)
    with Queue(name, here) as queue:
        queue.schedule(NIGHTLY, cron="0 3 * * *", data={"n": NIGHTLY})
    watch, began = Watch(), time.perf_counter()
    with Memory() as memory:
        result = move(spark, lake, here, there, name, progress=watch)
        seconds = time.perf_counter() - began
    watch("end", 0, None)
    after = seen(there, name)
    after.due.pop(NIGHTLY, None)  # some protocols keep the schedule's next job among the delayed ones
    found = {
        "from": source,
        "to": target,
        "jobs": jobs,
        "seconds": seconds,
        "stages": {stage: spent for stage, spent in watch.seconds.items() if spent >= 0.05},
        "memory": memory.most,
        "moved": result.moved,
        "left": result.left,
        "verified": result.verified.as_dict(),
        "schedules": list(result.schedules),
        "order_kept": after.ready == before.ready,
        "due_kept": before.due.keys() == after.due.keys()
        and all(abs(ms - before.due[each]) <= 1 for each, ms in after.due.items()),
        "source_empty": not any(result.remaining.values()),
    }
    print(f"move {source} → {target}: {jobs:,} jobs in {seconds:.1f} s, {found['verified']}", flush=True)
    return found
