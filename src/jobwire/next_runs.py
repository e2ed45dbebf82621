"""The next times of a schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from jobwire.cron import Cron
from jobwire.cron.zones import zone_of
from jobwire.errors import InvalidOption
from jobwire.model import Schedule

_RUNS = 5


def next_runs(schedule: Schedule, number: int = _RUNS, now: datetime | None = None) -> list[datetime]:
    """Returns the next times, beginning with the one that the store has, in the zone of the schedule.

    >>> noon = datetime(2030, 3, 30, 12, tzinfo=UTC)
    >>> nightly = Schedule("nightly", "reports", "reports", cron="0 3 * * *", tz="Europe/Berlin")
    >>> [f"{time:%d.%m. %H:%M %Z}" for time in next_runs(nightly, 2, noon)]
    ['31.03. 03:00 CEST', '01.04. 03:00 CEST']
    """
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
                at = cron.next_after(now or datetime.now(UTC), zone)
            if at is None or (schedule.end_at is not None and at > schedule.end_at):
                break
            runs.append(at.astimezone(zone))
            if cron is not None:
                at = cron.next_after(at, zone)
            else:
                at = None if schedule.every is None else at + timedelta(seconds=schedule.every)
            if at is None:
                break
    except (InvalidOption, OverflowError):
        pass
    return runs
