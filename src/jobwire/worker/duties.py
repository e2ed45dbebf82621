"""The protocol's periodic work (stalled recovery and the like), run beside the claiming."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from itertools import islice

from jobwire.backend import Duty
from jobwire.counted import counted
from jobwire.errors import JobwireError
from jobwire.worker.journal import Journal
from jobwire.worker.stats import Stats


async def perform(duty: Duty, stats: Stats, journal: Journal) -> None:
    """Run the duty now and then every so often, for ever. A run that takes longer than its period skips the beats it
    missed, and counts them; a run that fails is tried again at the next beat."""
    while True:
        began = time.monotonic()
        try:
            report = await duty.run()
        except (JobwireError, TimeoutError) as error:
            journal.warning("could not %s (%s); trying again in %.0f s", duty.name, error, duty.every)
        else:
            if report.recovered:
                stats.recovered += len(report.recovered)
                journal.warning(
                    "took back %s from workers that died: %s",
                    counted(len(report.recovered), "job"), _few(report.recovered),
                )  # fmt: skip
            if report.note:
                journal.info("%s", report.note)
        took = time.monotonic() - began
        missed = int(took // duty.every)
        stats.duties_skipped += missed
        await asyncio.sleep((missed + 1) * duty.every - took)


def _few(ids: Collection[str], most: int = 5) -> str:
    return ", ".join(islice(ids, most)) + (", …" if len(ids) > most else "")
