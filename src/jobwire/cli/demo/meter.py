"""Measurements on one queue of the demo."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping

from jobwire.boundary import Claim, Outcome, Verdict
from jobwire.cli.demo.histogram import Histogram
from jobwire.cli.demo.workload import due_at
from jobwire.model import State

_WINDOW = 2.0


class Meter:
    """An observer of a queue's workers, which also counts what the producers added."""

    def __init__(self) -> None:
        self.added = 0
        """Jobs that the server has acknowledged."""
        self.completed = 0
        self.failed = 0
        self.retried = 0
        self.retried_job: str | None = None
        """The id of one of them."""
        self.waits = Histogram()
        """Times from when a job was due until a worker had claimed it, for first runs."""
        self.runs = Histogram()
        self.counts: Mapping[State, int] = {}
        """The server's counts at the last look."""
        self._finished: deque[tuple[float, int]] = deque()

    def started(self, claim: Claim) -> None:
        due = due_at(claim.job)
        if due is not None and claim.job.attempts_made == 0:
            self.waits.add(time.time() - due)

    def settled(self, outcome: Outcome, verdict: Verdict) -> None:
        self.runs.add(outcome.claim.run_seconds)
        match verdict:
            case Verdict.COMPLETED:
                self.completed += 1
            case Verdict.FAILED:
                self.failed += 1
            case Verdict.RETRIED:
                self.retried += 1
                self.retried_job = outcome.claim.job.id
            case _:
                pass

    def look(self, counts: Mapping[State, int]) -> None:
        """Records the server's counts and the present speed."""
        self.counts = counts
        now = time.monotonic()
        self._finished.append((now, self.completed + self.failed))
        while now - self._finished[0][0] > _WINDOW:
            self._finished.popleft()

    @property
    def speed(self) -> float:
        """Jobs finished per second, over the last few seconds."""
        (since, before), (until, after) = self._finished[0], self._finished[-1]
        return (after - before) / (until - since) if until > since else 0.0

    @property
    def stored_completed(self) -> int:
        return self.counts.get(State.COMPLETED, 0)

    @property
    def stored_failed(self) -> int:
        return self.counts.get(State.FAILED, 0)

    @property
    def left(self) -> int:
        """Jobs on the server that are not finished."""
        return sum(number for state, number in self.counts.items() if not state.finished)
