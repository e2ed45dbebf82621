"""Repeating jobs: BridgeMQ's cron jobs, made and listed. `crontab` says when they run, `scheduler` lets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobwire.backend import PreparedJob
from jobwire.backends.bridgemq import codec, crontab
from jobwire.backends.bridgemq.jobtype import JobType
from jobwire.backends.bridgemq.keys import check_job_id
from jobwire.errors import InvalidOption
from jobwire.model import Schedule
from jobwire.options import NewSchedule

_NOT_FOR_TEMPLATES = ("id", "delay", "run_at")


def template_id(queue: str, key: str) -> str:
    return f"cron:{queue}:{key}"


async def schedule(kind: JobType, new: NewSchedule, job: PreparedJob) -> Schedule:
    """Create or replace a cron job."""
    for option in _NOT_FOR_TEMPLATES:
        value = getattr(new.job, option)
        if value is not None:
            raise InvalidOption(option, value, "can't be given: the schedule decides it")
    assert new.cron is not None  # noqa: S101 the protocol has no other schedules, which was asked before
    job_id = template_id(kind.name, new.key)
    check_job_id(job_id)
    now = await kind.now_ms()
    rule: codec.Document = {"cron": new.cron, "timezone": new.tz or "UTC"}
    following = crontab.next_ms(new.cron, new.tz, now)
    data = codec.encode_job(job, kind.name, job_id, now, rule)
    document = codec.parse(data) or {}
    private = {"cronKey": new.key}
    private |= {name: new.job.extra[name] for name in ("cronMode", "overlap") if name in new.job.extra}
    document["x"] = {**codec.mapping(document.get("x")), **private}
    await kind.run("schedule", kind.name, "put", job_id, codec.rewritten(document), following)
    return _read(kind.name, job_id, following, document)


async def unschedule(kind: JobType, key: str) -> bool:
    """Stop a cron job, named by its key or, if a peer made it, by its job id."""
    for job_id in (template_id(kind.name, key), key):
        if await kind.run("schedule", kind.name, "drop", job_id):
            return True
    return False


async def schedules(kind: JobType) -> Sequence[Schedule]:
    """The cron jobs of the type, the soonest first."""
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
    """Members with their scores, whether the driver pairs them or not."""
    if rows and isinstance(rows[0], (tuple, list)):
        return [(member.decode(errors="replace"), float(score)) for member, score in rows]
    return [
        (member.decode(errors="replace"), float(score)) for member, score in zip(rows[::2], rows[1::2], strict=True)
    ]
