"""Repeating jobs (BullMQ's job schedulers).

The life of a schedule: `schedule` stores a record and makes the first job, with the id `repeat:<key>:<ms>`. The worker
that claims that job makes the next one before running it (`advance`), so a schedule has exactly one job ahead and
stops while no worker runs. It ends when its limit or end is reached: the record stays, but no next job is made.

A cron rule without a time zone means UTC here, and the record has `tz`: otherwise Node would read the rule in the local
zone of the process that claims the job.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobwire import codec as json_codec
from jobwire.backends.bullmq import codec
from jobwire.backends.bullmq.connection import Server
from jobwire.backends.bullmq.produce.template import job_of
from jobwire.backends.redisio.scripts import Argument
from jobwire.boundary import PreparedJob
from jobwire.checks import seconds
from jobwire.cron import Cron
from jobwire.errors import InvalidOption, MalformedPayload, WrongState
from jobwire.model import Schedule
from jobwire.options import NewJob, NewSchedule

_STEP = 500
_DEFAULT_ZONE = "UTC"
_NOT_FOR_TEMPLATES = ("id", "delay", "run_at", "unique", "parent")


class BullSchedules:
    """Implements Schedules."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        """Creates or replaces a schedule. With the same rule as before, it keeps its next time."""
        keys = self._server.keys(queue)
        now = await self._server.scripts.clock.now_ms()
        _check(schedule, now)
        rule = _rule(schedule)
        template = _template(job.new, keys.prefix)
        every: int | None = rule.get("every")
        options: dict[str, Any] = {
            **template,
            "repeat": {**rule, "count": 1},
            "timestamp": now,
            "repeatJobKey": schedule.key,
        }
        first: int | None = rule.get("startDate")
        if schedule.cron is not None:
            first = now if schedule.immediately else next_by_rule(rule, now)
            options["prevMillis"] = first
        record: dict[str, Argument] = {"name": job.name, **rule}
        if template:
            record["opts"] = json_codec.dumps(template, field="opts")
        data = b"{}" if job.data == b"null" else job.data  # as Node does for schedules, but not for jobs
        if data != b"{}":
            record["data"] = data
        rule_text = f"{rule.get('every', '')}|{rule.get('pattern', '')}|{rule.get('tz', '')}"
        answer = await self._server.scripts.run_together(
            "schedule_put",
            [keys.base],
            [
                *(now, schedule.key, _or_empty(every), _or_empty(first), rule_text, data, json_codec.dumps(options)),
                *(part for pair in record.items() for part in pair),
            ],
        )
        if answer == -1:
            raise WrongState(f"schedule {schedule.key!r} can't be made: jobs of its next two times exist already")
        moment, runs = answer
        stored = {name: value if isinstance(value, bytes) else str(value).encode() for name, value in record.items()}
        return _read(keys.queue, schedule.key, moment, {**stored, "ic": str(runs).encode()})

    async def unschedule(self, queue: str, key: str) -> bool:
        return bool(await self._server.run("schedule_drop", queue, [key]))

    async def search(self, queue: str, most: int) -> tuple[Sequence[Schedule], bool]:
        return await self.schedules(queue), True

    def job_of(self, schedule: Schedule) -> NewJob:
        return job_of(schedule)

    async def schedules(self, queue: str) -> Sequence[Schedule]:
        """Returns all schedules, the soonest first, including repeat jobs of older BullMQ versions."""
        keys = self._server.keys(queue)
        found: list[Schedule] = []
        while True:
            first = len(found)
            rows: list[Any] = await self._server.scripts.run("schedule_list", [keys.base], [first, first + _STEP - 1])
            for key, moment, fields in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
                found.append(_read(keys.queue, key.decode(errors="replace"), moment, codec.raw_fields(fields)))
            if len(rows) < 3 * _STEP:
                return found


def _check(new: NewSchedule, now: int) -> None:
    if new.key.count(":") > 3:
        raise InvalidOption("key", new.key, "must not contain more than three ':': BullMQ reads that as an old form")
    for option in _NOT_FOR_TEMPLATES:
        value = getattr(new.job, option)
        if value is not None:
            raise InvalidOption(option, value, "can't be given: a BullMQ schedule decides it for the jobs it makes")
    for option in ("timestamp", "waitingChildren"):
        if option in new.job.extra:
            raise InvalidOption(f"extra.{option}", new.job.extra[option], "can't be given to the jobs of a schedule")
    if new.end_at is not None and codec.to_ms(new.end_at) <= now:
        raise InvalidOption("end_at", new.end_at, "must lie in the future")


def _rule(new: NewSchedule) -> dict[str, Any]:
    """Returns the rule under the names of the record and of the `repeat` option of every job."""
    rule: dict[str, Any] = {}
    if new.cron is not None:
        rule["pattern"] = new.cron
        rule["tz"] = new.tz or _DEFAULT_ZONE
    elif new.every is not None:
        rule["every"] = max(1, codec.milliseconds(seconds("every", new.every)))
        if new.tz is not None:
            rule["tz"] = new.tz
    if new.limit is not None:
        rule["limit"] = new.limit
    if new.start_at is not None:
        rule["startDate"] = codec.to_ms(new.start_at)
    if new.end_at is not None:
        rule["endDate"] = codec.to_ms(new.end_at)
    return rule


def _template(job: NewJob, prefix: str) -> dict[str, Any]:
    options = codec.options_dict(job, 0, prefix)
    if job.attempts is None:
        del options["attempts"]
    return options


def next_by_rule(rule: dict[str, Any], now: int, previous: int = 0) -> int:
    """Returns the next time of a cron rule, never before its start and never one that is past."""
    after = max(now, previous, moment_ms(rule.get("startDate")) or 0)
    return Cron.parse(str(rule["pattern"])).next_ms(after, str(rule.get("tz") or _DEFAULT_ZONE))


def _read(queue: str, key: str, moment: bytes, record: codec.Raw) -> Schedule:
    every = _number(record.get("every"))
    runs, limit = _number(record.get("ic")), _number(record.get("limit"))
    return Schedule(
        key=key,
        queue=queue,
        name=_text(record.get("name")) or key,
        every=every / 1000 if every is not None else None,
        cron=_text(record.get("pattern")),
        tz=_text(record.get("tz")),
        data=_json(record["data"]) if "data" in record else {},
        next_run=codec.from_ms(moment),
        runs=int(runs) if runs is not None else None,
        limit=int(limit) if limit is not None else None,
        start_at=codec.from_ms(record.get("startDate")),
        end_at=codec.from_ms(record.get("endDate")),
        raw=record,
    )


def _text(value: bytes | None) -> str | None:
    return value.decode(errors="replace") if value is not None else None


def _json(value: bytes) -> Any:
    try:
        return json_codec.loads(value)
    except MalformedPayload:
        return value.decode(errors="replace")


def _number(value: bytes | None) -> float | None:
    try:
        found = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def moment_ms(value: Any) -> int | None:
    """Returns a date of a rule in ms. Old producers stored it as ISO text."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value)
    try:
        return codec.to_ms(datetime.fromisoformat(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def _or_empty(value: int | None) -> Argument:
    return "" if value is None else value
