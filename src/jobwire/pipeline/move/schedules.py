"""Decides which schedules can be moved, and what they become in the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobwire import urls
from jobwire.boundary import Capabilities, Feature
from jobwire.errors import InvalidOption, JobwireError
from jobwire.model import Schedule
from jobwire.options import NewJob, NewSchedule
from jobwire.pipeline.stores.blocking import BlockingBackend
from jobwire.pipeline.stores.dialect import dialect_of
from jobwire.preparing import prepare
from jobwire.required_features import require_for_schedule

_MINUTE, _HOUR = 60, 3600


@dataclass(frozen=True)
class ScheduleMove:
    """The decision about one schedule: the schedule to create in the target, or the reason why it stays."""

    key: str
    described: str
    new: NewSchedule | None = None

    @property
    def stays(self) -> bool:
        return self.new is None


def plan_schedules(
    source: BlockingBackend, queue: str, target: BlockingBackend, to_queue: str
) -> Sequence[ScheduleMove]:
    """Returns a decision about every schedule of the source."""
    if source.backend.schedules is None:
        return ()
    found = source.ask(source.backend.schedules.schedules(queue))
    return [_decided(schedule, queue, target, to_queue) for schedule in found]


def _decided(schedule: Schedule, queue: str, target: BlockingBackend, to_queue: str) -> ScheduleMove:
    can, dialect = target.can, dialect_of(urls.parse(target.url).protocol)
    described = _rule(schedule)
    try:
        cron, every = schedule.cron, schedule.every
        if every is not None and not can.has(Feature.SCHEDULE_EVERY):
            cron, every = as_cron(every, seconds=dialect.cron_seconds), None
            described += f" becomes cron {cron}"
        zone = _zone(schedule, can, target)
        new = NewSchedule(
            schedule.key or to_queue,
            NewJob(schedule.data, _name(schedule, queue, can)),
            every,
            None if every is not None else cron,
            zone,
            schedule.limit,
            schedule.start_at,
            schedule.end_at,
        )
        dialect.check_schedule(new)
        require_for_schedule(can, to_queue, new)
        prepare(target.backend, to_queue, new.job, None)
    except JobwireError as error:
        return ScheduleMove(schedule.key, f"{described}: stays, {error}")
    return ScheduleMove(schedule.key, described, new)


def _name(schedule: Schedule, queue: str, can: Capabilities) -> str | None:
    return schedule.name if can.has(Feature.JOB_NAMES) and schedule.name not in ("", queue) else None


def _zone(schedule: Schedule, can: Capabilities, target: BlockingBackend) -> str | None:
    """Returns the zone to ask for. Where schedules have none, it is the instance's, in the URL."""
    if schedule.cron is None:
        return None
    if can.has(Feature.SCHEDULE_TZ):
        return schedule.tz
    instance = urls.parse(target.url).options.get("tz", "UTC")
    return None if (schedule.tz or "UTC") == instance else schedule.tz


def _rule(schedule: Schedule) -> str:
    if schedule.every is not None:
        return f"every {schedule.every:g} s"
    return f"cron {schedule.cron}" + (f" in {schedule.tz}" if schedule.tz else "")


def as_cron(every: float, *, seconds: bool) -> str:
    """Returns the cron expression with the same rhythm. Raises InvalidOption if there is none.

    >>> as_cron(300, seconds=False), as_cron(7200, seconds=False), as_cron(15, seconds=True)
    ('*/5 * * * *', '0 */2 * * *', '*/15 * * * * *')
    """
    for unit, fields, whole in ((_HOUR, "0 {} * * *", 24), (_MINUTE, "{} * * * *", 60)):
        count, rest = divmod(every, unit)
        if not rest and count >= 1 and whole % count == 0:
            return fields.format("*" if count == 1 else "0" if count == whole else f"*/{int(count)}")
    if seconds and every == int(every) and _MINUTE % every == 0:
        return f"*/{int(every)} * * * * *" if every > 1 else "* * * * * *"
    raise InvalidOption("every", every, "has no cron expression of the same rhythm")
