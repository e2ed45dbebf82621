"""What a stored job says about its runs, read from its native fields: the options that a move takes along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from jobwire import codec
from jobwire.backoff import Backoff
from jobwire.errors import InvalidOption, MalformedPayload
from jobwire.options import Keep

Options = dict[str, Any]
_PGBOSS_TIMEOUT = 900
"""Seconds, the default of a queue: written into every job, so it says nothing about one."""


def options_of(protocol: str, raw: Mapping[str, Any]) -> Options:
    """Keywords of NewJob: backoff, timeout, keep_completed, keep_failed. What can't be read counts as not given."""
    match protocol:
        case "bullmq":
            found = _bullmq(_object(raw.get("opts")))
        case "pgboss":
            found = _pgboss(raw)
        case "bridgemq":
            found = _bridgemq(raw)
        case _:
            found = {}
    return {name: value for name, value in found.items() if value is not None}


def _bullmq(opts: Mapping[str, Any]) -> Options:
    backoff = opts.get("backoff")
    if isinstance(backoff, (int, float)) and not isinstance(backoff, bool):
        backoff = {"type": "fixed", "delay": backoff}
    return {
        "backoff": _backoff(_object(backoff), 1000),
        "keep_completed": _keep(opts.get("removeOnComplete")),
        "keep_failed": _keep(opts.get("removeOnFail")),
    }


def _pgboss(raw: Mapping[str, Any]) -> Options:
    delay = _number(raw.get("retry_delay")) or 0
    exponential = raw.get("retry_backoff") is True
    kind = "exponential" if exponential else "fixed"
    cap = _number(raw.get("retry_delay_max")) if exponential else None
    timeout = _number(raw.get("expire_seconds"))
    return {
        "backoff": _made(kind, max(delay, 1.0) if exponential else delay, cap=cap) if delay or exponential else None,
        "timeout": timeout if timeout and timeout != _PGBOSS_TIMEOUT else None,
    }


def _bridgemq(raw: Mapping[str, Any]) -> Options:
    retry = _object(raw.get("retry"))
    timeout = _number(_object(raw.get("x")).get("timeoutMs"))
    return {
        "backoff": _backoff(_object(retry.get("backoff")), 1000),
        "timeout": timeout / 1000 if timeout else None,
    }


def _backoff(stored: Mapping[str, Any], parts: int) -> Backoff | None:
    kind, delay = stored.get("type"), _number(stored.get("delay")) or 0.0
    if not isinstance(kind, str):
        return None
    if kind not in ("fixed", "linear", "exponential"):
        return _made("custom", 0.0, name=kind)
    jitter = stored.get("jitter")
    spread = 0.25 if jitter is True else _number(jitter) or 0.0
    cap = _number(stored.get("maxDelay"))
    return _made(kind, delay / parts, jitter=spread, cap=cap / parts if cap else None)


def _made(kind: str, delay: float, **more: Any) -> Backoff | None:
    try:
        return Backoff(kind, delay, **more)
    except InvalidOption:
        return None


def _keep(stored: Any) -> bool | int | Keep | None:
    """BullMQ's true means: remove at once. 0 and less than 0: none and all."""
    if isinstance(stored, bool):
        return not stored
    if isinstance(stored, int):
        return stored if 0 <= stored <= 10_000 else None
    if isinstance(stored, dict):
        fields = cast("Mapping[str, Any]", stored)
        count, age = _number(fields.get("count")), _number(fields.get("age"))
        if count is not None and not 0 <= count <= 10_000:
            count = None
        if count is not None or age is not None:
            return Keep(None if count is None else int(count), age)
    return None


def _object(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = codec.loads(value)
        except MalformedPayload:
            return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
