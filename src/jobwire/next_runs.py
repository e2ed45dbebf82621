"""The next times of a schedule."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from jobwire.cron import Cron
from jobwire.cron.zones import zone_of
from jobwire.errors import InvalidOption
from jobwire.model import Schedule

_RUNS = 5


def next_runs(schedule: Schedule, number: int = _RUNS, now: datetime | None = None) -> list[datetime]:
    """Returns the next times, beginning with the one that the store has, in the zone of the schedule. If that one is
    late, it runs once, and those that were missed since then do not.

    >>> noon = datetime(2030, 3, 30, 12, tzinfo=UTC)
    >>> nightly = Schedule("nightly", "reports", "reports", cron="0 3 * * *", tz="Europe/Berlin")
    >>> [f"{time:%d.%m. %H:%M %Z}" for time in next_runs(nightly, 2, noon)]
    ['31.03. 03:00 CEST', '01.04. 03:00 CEST']
    >>> late = Schedule("often", "reports", "reports", every=60, next_run=noon - timedelta(seconds=90))
    >>> [f"{time:%H:%M:%S}" for time in next_runs(late, 3, noon)]
    ['11:58:30', '12:00:30', '12:01:30']
    """
    now = now or datetime.now(UTC)
    try:
        zone = zone_of(schedule.tz or "UTC")
        cron = Cron.parse(schedule.cron, repeats=True) if schedule.cron else None
    except InvalidOption:  # a peer may have stored a form that we can't read
        return [] if schedule.next_run is None else [schedule.next_run]
    at, runs = schedule.next_run, list[datetime]()
    left = number if schedule.limit is None else min(number, max(0, schedule.limit - (schedule.runs or 0) + 1))
    try:
        while len(runs) < left:
            if at is None and cron is not None:
                at = cron.next_after(now, zone)
            if at is None or (schedule.end_at is not None and at > schedule.end_at):
                break
            runs.append(at.astimezone(zone))
            if cron is not None:
                at = cron.next_after(max(at, now), zone)
            elif schedule.every is not None:
                missed = max(0, math.floor((now - at).total_seconds() / schedule.every))
                at += timedelta(seconds=schedule.every * (missed + 1))
            else:
                at = None
            if at is None:
                break
    except (InvalidOption, OverflowError):
        pass
    return runs
