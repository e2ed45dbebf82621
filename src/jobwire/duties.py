"""Does the protocol's periodic work, such as recovery, for workers and for claims by hand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from jobwire.boundary import Duty, DutyReport
from jobwire.counted import counted
from jobwire.deadline import deadline
from jobwire.errors import JobwireError
from jobwire.journal import Journal, few


async def perform(duty: Duty, journal: Journal, timeout: float, on_run: Callable[[int, int], None]) -> None:
    """Runs the duty at once and then once per period, until cancelled. A run that takes longer than its period skips
    the runs that it overlaps. A run that fails, or takes longer than the timeout, is tried again after the period.
    `on_run` is called after each run with the number of recovered jobs and the number of skipped runs."""
    while True:
        began = time.monotonic()
        recovered = 0
        try:
            async with deadline(timeout):
                report = await duty.run()
        except (JobwireError, TimeoutError) as error:
            reason = str(error) or f"no answer within {timeout:g} s"
            journal.warning("could not %s (%s); trying again in %.0f s", duty.name, reason, duty.every)
        except Exception:  # an error of ours or of a driver must not end the worker and its other duties
            journal.exception("could not %s; trying again in %.0f s", duty.name, duty.every)
        else:
            recovered = len(report.recovered)
            _log(report, journal)
        took = time.monotonic() - began
        missed = int(took // duty.every)
        on_run(recovered, missed)
        await asyncio.sleep((missed + 1) * duty.every - took)


def _log(report: DutyReport, journal: Journal) -> None:
    if report.recovered:
        journal.warning(
            "recovered %s of dead workers: %s", counted(len(report.recovered), "job"), few(report.recovered)
        )
    if report.note:
        journal.info("%s", report.note)
