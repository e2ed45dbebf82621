"""Runs that are missing in the figures because a store did not keep them."""

from __future__ import annotations

from jobwire.pipeline.report.frames import Column, Frames
from jobwire.pipeline.report.wording import listed, plural

CHECK = "forgotten runs"
"""The name of the check in the table `quality`."""
_NAMED = 3


def forgotten_runs(frames: Frames) -> int:
    """Returns how many runs the stores did not keep, over the whole history."""
    return int(_of_queues(frames).sum())


def queues_that_forget(frames: Frames) -> str:
    """Returns the queues whose runs are missing, those with the most first."""
    names = [str(name) for name in _of_queues(frames).sort_values(ascending=False, kind="stable").index]
    return listed(names) if len(names) <= _NAMED else plural(len(names), "queue")


def _of_queues(frames: Frames) -> Column:
    checks = frames.quality
    found = checks[(checks["check_name"] == CHECK) & (checks["value"] > 0)]
    return found.groupby("label")["value"].sum()
