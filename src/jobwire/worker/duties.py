"""The protocol's periodic work (stalled recovery and the like), run beside the claiming."""

from __future__ import annotations

import asyncio
import time

from jobwire.boundary import Duty, DutyReport
from jobwire.counted import counted
from jobwire.deadline import deadline
from jobwire.errors import JobwireError
from jobwire.worker.journal import Journal, few
from jobwire.worker.stats import Stats


async def perform(duty: Duty, stats: Stats, journal: Journal, timeout: float) -> None:
    """Run the duty now and then every so often, until cancelled. A run that takes longer than its period skips the
    beats it missed, and counts them; a run that fails, or takes longer than the timeout, is tried again at the next
    beat."""
    while True:
        began = time.monotonic()
        try:
            async with deadline(timeout):
                report = await duty.run()
        except (JobwireError, TimeoutError) as error:
            reason = str(error) or f"no answer within {timeout:g} s"
            journal.warning("could not %s (%s); trying again in %.0f s", duty.name, reason, duty.every)
        except Exception:  # a fault of ours or of a driver must not end the worker: the other duties and jobs go on
            journal.exception("could not %s; trying again in %.0f s", duty.name, duty.every)
        else:
            _log(report, stats, journal)
        took = time.monotonic() - began
        missed = int(took // duty.every)
        stats.duties_skipped += missed
        await asyncio.sleep((missed + 1) * duty.every - took)


def _log(report: DutyReport, stats: Stats, journal: Journal) -> None:
    if report.recovered:
        stats.recovered += len(report.recovered)
        journal.warning(
            "recovered %s of dead workers: %s", counted(len(report.recovered), "job"), few(report.recovered)
        )
    if report.note:
        journal.info("%s", report.note)
