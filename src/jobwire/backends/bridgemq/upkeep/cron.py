"""Finds the cron jobs that are due, and computes when they are due next.

The next time is the first one strictly after now by the server's clock, in the job's own time zone, or in UTC if it has
none. So several ticks that were missed while no scheduler ran make one run, not one run each.

A cron job is a *template*: by default its own id is pushed, as the spec's script does, and a tick is skipped while an
earlier one has not finished. With `cronMode: instance` each tick makes a job of its own, `<id>:<due ms>`, with a result
of its own. `overlap: skip` then skips a tick while the last instance has not finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.redisio.scripts import Argument, Scripts
from jobwire.cron import Cron
from jobwire.errors import InvalidOption

_BATCH = 100


@dataclass(frozen=True, slots=True)
class Tick:
    """One cron job that is due."""

    job_id: bytes
    due: float
    next_due: int | None
    instance: str = ""
    text: bytes = b""
    """The instance's data, or the reason why there is no next time."""
    skip_overlap: bool = False

    def arguments(self) -> Sequence[Argument]:
        following: Argument = "" if self.next_due is None else self.next_due
        overlap = "s" if self.skip_overlap else ""
        return self.job_id, f"{self.due:.17g}", following, self.instance, self.text, overlap


class Crontab:
    """The cron jobs of a namespace."""

    def __init__(self, scripts: Scripts, keys: Keys) -> None:
        self._scripts = scripts
        self._keys = keys

    async def due(self) -> list[Tick]:
        """Returns the cron jobs that are due by the server's clock."""
        now, *rows = await self._scripts.run("due_schedules", [self._keys.base], [_BATCH])
        parts = iter(rows)
        return [
            tick_of(job_id, float(score), data, int(now))
            for job_id, score, data in zip(parts, parts, parts, strict=True)
        ]


def tick_of(raw_id: bytes, due: float, raw: bytes, now_ms: int) -> Tick:
    try:
        job_id = raw_id.decode()
    except UnicodeDecodeError:
        return Tick(raw_id, due, None, text=b"the job id is not valid UTF-8")
    document = codec.parse(raw) if raw else None
    if document is None:
        return Tick(raw_id, due, None, text=b"the job data is not a JSON object")
    schedule, private = codec.mapping(document.get("schedule")), codec.mapping(document.get("x"))
    try:
        following = next_ms(str(schedule.get("cron")), schedule.get("timezone"), now_ms)
    except InvalidOption as error:
        return Tick(raw_id, due, None, text=str(error).encode(errors="replace"))
    if private.get("cronMode") != "instance":
        return Tick(raw_id, due, following)
    instance = f"{job_id}:{due:.0f}"
    copy = {**document, "jobId": instance, "schedule": {}, "createdAt": now_ms, "x": {**private, "cronId": job_id}}
    return Tick(raw_id, due, following, instance, codec.rewritten(copy), private.get("overlap") == "skip")


def next_ms(expression: str, timezone: Any, after_ms: int) -> int:
    return Cron.parse(expression).next_ms(after_ms, timezone if isinstance(timezone, str) and timezone else "UTC")
