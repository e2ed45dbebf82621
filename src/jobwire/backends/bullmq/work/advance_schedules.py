"""Makes a schedule's next job, when a worker has claimed the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from jobwire import codec as json_codec
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.bullmq.produce.schedules import moment_ms, next_by_rule
from jobwire.backends.bullmq.work.stored_options import number
from jobwire.backends.redisio.scripts import Argument, Scripts
from jobwire.boundary import Claim
from jobwire.errors import InvalidOption, MalformedPayload
from jobwire.model import Job


async def advance(scripts: Scripts, keys: Keys, claims: Sequence[Claim], now: int) -> Sequence[str]:
    """Makes the next job of every schedule that a claimed job belongs to. Returns an error text for each that failed.

    It may be called again for the same claims, and with claims that belong to no schedule. A schedule that fails does
    not stop the others. After StoreUnavailable it is unknown which of them have their next job: call it again, because
    a schedule without a next job has stopped.
    """
    problems: list[str] = []
    names: list[str] = []
    args: list[Argument] = [now]
    for claim in claims:
        rjk = claim.job.raw.get("rjk")
        if not rjk:
            continue
        try:
            step = _next_step(claim.job, rjk, now)
        except (InvalidOption, MalformedPayload, _Unreadable) as error:
            problems.append(_problem(rjk.decode(errors="replace"), error))
            continue
        if step is not None:
            names.append(rjk.decode(errors="replace"))
            args.extend(step)
    if names:
        answers: list[bytes] = await scripts.run("schedule_advance", [keys.base], args)
        for name, answer in zip(names, answers, strict=True):
            if answer.startswith(b"!"):
                problems.append(_problem(name, answer[1:].decode(errors="replace")))
    return problems


class _Unreadable(Exception):
    """The job's options have no rule of a schedule."""


def _problem(schedule: str, why: object) -> str:
    return f"schedule {schedule!r} has stopped: {why}"


def _next_step(job: Job, rjk: bytes, now: int) -> tuple[Argument, ...] | None:
    """Returns the script's arguments for the next job, or None if the schedule has ended."""
    found = json_codec.loads(job.raw.get("opts", b"{}"))
    options: dict[str, Any] = cast(dict[str, Any], found) if isinstance(found, dict) else {}
    if not isinstance(options.get("repeat"), dict):
        raise _Unreadable("its job has no `repeat` option")
    rule = cast(dict[str, Any], options["repeat"])
    count = int(number(rule.get("count")) or 0) + 1
    limit, end = number(rule.get("limit")), moment_ms(rule.get("endDate"))
    if (limit is not None and count > limit) or (end is not None and now > end):
        return None
    # The script decides id and delay. `prevMillis` is the time of one job and not of the next.
    following = {name: value for name, value in options.items() if name not in ("jobId", "delay", "prevMillis")}
    following.update(repeat={**rule, "count": count}, timestamp=now)
    following.setdefault("attempts", 0)
    if number(options.get("backoff")) is not None:
        following["backoff"] = {"type": "fixed", "delay": options["backoff"]}
    every = number(rule.get("every")) or 0
    at: Argument = ""
    if rule.get("pattern"):
        at = next_by_rule(rule, now, int(number(options.get("prevMillis")) or 0))
    elif every > 0 and _is_version_4(rjk):
        at = int((now // every + 1) * every)
    if at:
        following["prevMillis"] = at
    if not _is_version_4(rjk):
        following["repeatJobKey"] = rjk.decode(errors="replace")
    return (rjk, job.id, every or "", at, json_codec.dumps(following, field="opts"))


def _is_version_4(key: bytes) -> bool:
    """Returns True for a repeat job that BullMQ 4 added: its key is name, job id, end date, zone and rule in one."""
    return key.count(b":") >= 4
