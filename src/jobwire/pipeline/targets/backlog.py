"""The jobs that a queue holds, as its last snapshot has them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import neg
from typing import Any

import pandas as pd

from jobwire.pipeline.targets.hours import QueueKey

COLUMNS = ("store", "queue", "state", "created_at", "scheduled_at", "seen_at")
"""The columns of `silver/jobs` that are needed."""
STATES = ("waiting", "paused", "delayed", "active", "waiting_children")
"""Those of jobs that have not finished."""


@dataclass(frozen=True)
class Backlog:
    """The unfinished jobs of a queue when it was last read."""

    key: QueueKey
    seen_at: datetime
    ready: int
    """Jobs that could run."""
    delayed: int
    waits: Sequence[timedelta] = ()
    """For how long each job has been ready of which that is known, the longest first."""

    def waiting_for(self, longer_than: timedelta) -> int:
        """Returns how many jobs have been ready for longer than this."""
        return bisect_left(self.waits, -longer_than, key=neg)


def backlogs(jobs: Any) -> dict[QueueKey, Backlog]:
    """Returns what each queue holds, from a frame of unfinished rows of `silver/jobs`.

    A job that the store no longer had at its last snapshot is gone, with or without an event. A store's jobs are all
    read in one snapshot, so its newest time is that of every queue in it.
    """
    if not len(jobs):
        return {}
    newest = jobs.groupby("store")["seen_at"].max()
    there = jobs[jobs["seen_at"] == jobs["store"].map(newest)]
    found: dict[QueueKey, Backlog] = {}
    for (store, queue), rows in there.groupby(["store", "queue"]):
        at = newest[store].to_pydatetime()
        due = pd.to_datetime(rows["scheduled_at"], utc=True).fillna(pd.to_datetime(rows["created_at"], utc=True))
        ready = rows["state"].isin(("waiting", "paused")) | ((rows["state"] == "delayed") & (due <= at))
        since = due[ready].dropna()
        found[QueueKey(store, queue)] = Backlog(
            QueueKey(store, queue),
            at,
            ready=int(ready.sum()),
            delayed=int(((rows["state"] == "delayed") & ~ready).sum()),
            waits=sorted((at - one.to_pydatetime() for one in since), reverse=True),
        )
    return found
