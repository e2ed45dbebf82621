"""Calls the worker's observers. They are the user's code: if one raises, that is logged and has no other effect."""

from __future__ import annotations

import time
from collections.abc import Sequence

from jobwire.boundary import Claim, Outcome, Verdict
from jobwire.journal import Journal
from jobwire.worker.stats import Observer

_REPORT_EVERY = 60.0


class Observers:
    """Calls all observers of one worker."""

    def __init__(self, observers: Sequence[Observer], journal: Journal) -> None:
        self._observers = tuple(observers)
        self._journal = journal
        self._reported: dict[int, float] = {}

    def started(self, claim: Claim) -> None:
        for observer in self._observers:
            try:
                observer.started(claim)
            except BaseException as error:  # also KeyboardInterrupt and its like: the worker must go on
                self._report(observer, "started", error)

    def settled(self, outcome: Outcome, verdict: Verdict) -> None:
        for observer in self._observers:
            try:
                observer.settled(outcome, verdict)
            except BaseException as error:
                self._report(observer, "settled", error)

    def _report(self, observer: Observer, method: str, error: BaseException) -> None:
        """Logs the error, once a minute for each observer: it may fail for every job."""
        now = time.monotonic()
        if now - self._reported.get(id(observer), -_REPORT_EVERY) < _REPORT_EVERY:
            return
        self._reported[id(observer)] = now
        self._journal.error(
            "observer %s raised in %s(); jobs go on, and it is called again (reported once a minute)",
            type(observer).__name__, method,
            exc_info=error,
        )  # fmt: skip
