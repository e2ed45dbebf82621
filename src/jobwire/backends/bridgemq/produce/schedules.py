"""Repeating jobs: makes and lists BridgeMQ's cron jobs. `upkeep/cron.py` computes when they are due, and
`upkeep/scheduler.py` pushes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.bridgemq.keys import check_job_id
from jobwire.backends.bridgemq.produce.encode_job import encode_job
from jobwire.backends.bridgemq.upkeep import cron
from jobwire.boundary import PreparedJob
from jobwire.errors import InvalidOption
from jobwire.model import Schedule
from jobwire.options import NewJob, NewSchedule, Target

_NOT_FOR_TEMPLATES = ("id", "delay", "run_at")
_TARGET = ("server", "stack", "capabilities", "region", "mode")


def template_id(queue: str, key: str) -> str:
    return f"cron:{queue}:{key}"


class BridgeSchedules:
    """Implements Schedules."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        """Creates or replaces a cron job."""
        kind = self._namespace.type(queue)
        for option in _NOT_FOR_TEMPLATES:
            value = getattr(schedule.job, option)
            if value is not None:
                raise InvalidOption(option, value, "can't be given: the schedule decides it")
        assert schedule.cron is not None  # noqa: S101 the protocol has no other schedules, which was checked before
        job_id = template_id(kind.name, schedule.key)
        check_job_id(job_id)
        now = await kind.now_ms()
        rule: codec.Document = {"cron": schedule.cron, "timezone": schedule.tz or "UTC"}
        following = cron.next_ms(schedule.cron, schedule.tz, now)
        data = encode_job(job, kind.name, job_id, now, rule)
        document = codec.parse(data) or {}
        private = {"cronKey": schedule.key}
        private |= {name: schedule.job.extra[name] for name in ("cronMode", "overlap") if name in schedule.job.extra}
        document["x"] = {**codec.mapping(document.get("x")), **private}
        await kind.run("schedule", kind.name, "put", job_id, codec.rewritten(document), following)
        return _read(kind.name, job_id, following, document)

    async def unschedule(self, queue: str, key: str) -> bool:
        """Stops a cron job, given by its key or, if a peer made it, by its job id."""
        kind = self._namespace.type(queue)
        for job_id in (template_id(kind.name, key), key):
            if await kind.run("schedule", kind.name, "drop", job_id):
                return True
        return False

    async def search(self, queue: str, most: int) -> tuple[Sequence[Schedule], bool]:
        return await self.schedules(queue), True

    def job_of(self, schedule: Schedule) -> NewJob:
        document = schedule.raw
        retry, limits = codec.mapping(document.get("retry")), codec.mapping(document.get("rateLimit"))
        stored = codec.mapping(document.get("target"))
        target = {name: stored[name] for name in _TARGET if stored.get(name)}
        extra = {
            **{name: retry[name] for name in ("skipOn", "rerouteOn") if retry.get(name)},
            **{name: limits[name] for name in ("maxConcurrent", "maxPerMinute") if limits.get(name)},
            **({"metadata": document["metadata"]} if document.get("metadata") else {}),
        }
        return NewJob(
            schedule.data,
            priority=document.get("priority"),
            attempts=codec.integer(retry.get("attempts"), 0) + 1,
            backoff=codec.backoff_of(document),
            timeout=codec.timeout_of(document),
            target=Target(**target) if target else None,
            extra=extra,
        )

    async def schedules(self, queue: str) -> Sequence[Schedule]:
        """Returns the cron jobs of the type, the soonest first."""
        kind = self._namespace.type(queue)
        rows: list[Any] = await kind.store.call("ZRANGE", kind.keys.cron, 0, -1, "WITHSCORES")
        pairs = _scored(rows)
        data: list[bytes | None] = (
            await kind.store.call("MGET", *(kind.keys.data(job_id) for job_id, _ in pairs)) if pairs else []
        )
        found: list[Schedule] = []
        for (job_id, score), raw in zip(pairs, data, strict=True):
            document = codec.parse(raw) if raw else None
            if document is not None and document.get("type") == kind.name:
                found.append(_read(kind.name, job_id, score, document))
        return found


def _read(queue: str, job_id: str, score: float, document: codec.Document) -> Schedule:
    rule = codec.mapping(document.get("schedule"))
    timezone = rule.get("timezone")
    return Schedule(
        key=codec.schedule_key(job_id, document),
        queue=queue,
        name=queue,
        cron=str(rule.get("cron", "")),
        tz=timezone if isinstance(timezone, str) else None,
        data=document.get("payload"),
        next_run=codec.from_ms(score),
        raw=document,
    )


def _scored(rows: list[Any]) -> list[tuple[str, float]]:
    """Returns members with their scores, whether or not the driver pairs them."""
    if rows and isinstance(rows[0], (tuple, list)):
        return [(member.decode(errors="replace"), float(score)) for member, score in rows]
    return [
        (member.decode(errors="replace"), float(score)) for member, score in zip(rows[::2], rows[1::2], strict=True)
    ]
