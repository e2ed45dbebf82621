"""Stores schedules as rows. Every scheduler of the schema, Node's or jobwire's, reads them in its passes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import orjson

from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import text
from jobwire.backends.pgboss.produce.native_options import options_of
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.pgboss.rules import OPTIONS, check_name
from jobwire.boundary import PreparedJob
from jobwire.cron import Cron
from jobwire.errors import InvalidOption, StoreRefused
from jobwire.model import Schedule
from jobwire.options import NewJob, NewSchedule

_log = logging.getLogger("jobwire.pgboss")


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule as it is stored."""

    name: str
    key: str
    cron: str
    timezone: str
    data: Any
    options: dict[str, Any]
    created: datetime | None
    now: datetime
    kind: str

    @classmethod
    def of(cls, row: Row) -> ScheduleRow:
        name, key, cron, timezone, data, options, created, now, kind = row
        options = cast("dict[str, Any]", options) if isinstance(options, dict) else {}
        return cls(name, key, cron, timezone or "UTC", data, options, created, now, kind)

    def described(self) -> Schedule:
        """Returns the schedule as callers see it."""
        return Schedule(
            key=self.key,
            queue=self.name,
            name=self.name,
            cron=self.cron,
            tz=self.timezone,
            data=self.data,
            next_run=self._next(),
            raw={"kind": self.kind, "options": self.options},
        )

    def _next(self) -> datetime | None:
        if self.kind != "cron":
            return None
        try:
            return Cron.parse(self.cron, repeats=True).next_after(self.now, self.timezone)
        except InvalidOption as error:  # a peer may have stored a form of cron that we can't read
            _log.warning(
                "schedule %r of queue %r can't be read, so its next run is unknown: %s", self.key, self.name, error
            )
            return None


class PgSchedules:
    """Implements Schedules."""

    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        if await self._queues.find(queue) is None:
            raise StoreRefused(f"there is no queue {queue!r} to schedule jobs for")
        check_name("key", schedule.key)
        cron, zone = schedule.cron or "", schedule.tz or "UTC"
        parsed = Cron.parse(cron)
        options = {**options_of(job.new), **({"tz": schedule.tz} if schedule.tz else {}), "key": schedule.key}
        values = {
            "queue": text(queue), "key": text(schedule.key), "cron": text(cron), "timezone": text(zone),
            "data": None if job.data == b"null" else job.data, "options": orjson.dumps(options),
        }  # fmt: skip
        parsed.next_ms(0, zone)  # an unknown zone is refused before anything is written
        await self._store.ask("schedule_put", values)
        [made] = [one for one in await self.schedules(queue) if one.key == schedule.key]
        return made

    async def unschedule(self, queue: str, key: str) -> bool:
        return bool(await self._store.ask("schedule_drop", {"queue": text(queue), "key": text(key)}))

    async def search(self, queue: str, most: int) -> tuple[Sequence[Schedule], bool]:
        return await self.schedules(queue), True

    def job_of(self, schedule: Schedule) -> NewJob:
        stored = cast("dict[str, Any]", schedule.raw["options"])
        own = {name: value for name, value in stored.items() if name in OPTIONS and value is not None}
        return NewJob(schedule.data, priority=stored.get("priority"), extra=own)

    async def schedules(self, queue: str) -> Sequence[Schedule]:
        rows = await self._store.ask("schedules", {"queue": text(queue)}, features=("of_queue",))
        return [ScheduleRow.of(row).described() for row in rows]
