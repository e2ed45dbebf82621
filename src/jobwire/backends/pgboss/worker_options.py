"""What a worker may ask of pg-boss alone, by keyword: `Worker(..., groupConcurrency=2, minPriority=5)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from jobwire.errors import InvalidOption
from jobwire.options import seconds, whole


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Checked when the worker starts. Names are pg-boss's own where it has the option."""

    groupConcurrency: int | Mapping[str, Any] | None = None  # noqa: N815 - native names, here and below
    """Jobs of one group that run at a time, over all workers: n, or {"default": n, "tiers": {"gold": n}}."""
    minPriority: int | None = None  # noqa: N815
    maxPriority: int | None = None  # noqa: N815
    keyRate: tuple[int, float] | None = None  # noqa: N815
    """(n, seconds): starts per key, over all workers. Ours: jobs beyond it wait, none is dropped."""
    keyRateBy: str = "singletonKey"  # noqa: N815
    """What a key is for `keyRate`: singletonKey or group."""
    poll: float = 1.0
    """Seconds between looks at a queue that does not ring."""
    supervise: bool = True
    """Take part in monitoring and maintenance, sharing the duty with Node's supervisors."""
    schedule: bool = True
    """Take part in making jobs of schedules."""
    monitorIntervalSeconds: float = 60.0  # noqa: N815
    maintenanceIntervalSeconds: float = 86_400.0  # noqa: N815
    cronMonitorIntervalSeconds: float = 30.0  # noqa: N815
    flowIntervalSeconds: float = 5.0  # noqa: N815
    warningQueueSize: int = 10_000  # noqa: N815
    persistWarnings: bool = False  # noqa: N815

    @classmethod
    def read(cls, extra: Mapping[str, Any]) -> WorkerOptions:
        known = [field.name for field in fields(cls)]
        for name, value in extra.items():
            if name not in known:
                raise InvalidOption(name, value, f"is not an option of a pg-boss worker; known are {', '.join(known)}")
            _check(name, value)
        return cls(**extra)

    @property
    def most_of_group(self) -> int | None:
        limit = self.groupConcurrency
        if limit is None or isinstance(limit, int):
            return limit
        return int(limit["default"])

    @property
    def tiers(self) -> Mapping[str, int]:
        limit = self.groupConcurrency
        return {} if limit is None or isinstance(limit, int) else limit.get("tiers", {})


def _check(name: str, value: Any) -> None:
    if value is None:
        return
    if name in ("supervise", "schedule", "persistWarnings"):
        if not isinstance(value, bool):
            raise InvalidOption(name, value, "must be True or False")
    elif name in ("minPriority", "maxPriority"):
        whole(name, value, minimum=-(2**31))
    elif name == "warningQueueSize":
        whole(name, value, minimum=1)
    elif name == "keyRate":
        _check_rate(name, value)
    elif name == "keyRateBy":
        if value not in ("singletonKey", "group"):
            raise InvalidOption(name, value, "must be singletonKey or group")
    elif name == "groupConcurrency":
        _check_groups(name, value)
    else:
        seconds(name, value, minimum=0.05)


def _check_rate(name: str, value: Any) -> None:
    try:
        count, period = value
    except (TypeError, ValueError):
        raise InvalidOption(name, value, "must be (jobs, seconds), e.g. (100, 60)") from None
    whole(name, count, minimum=1)
    seconds(name, period, minimum=0.001)


def _check_groups(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        whole(name, value, minimum=1)
        return
    limits = cast("Mapping[str, Any]", value)
    if not set(limits) <= {"default", "tiers"} or "default" not in limits:
        raise InvalidOption(name, dict(limits), 'must be n or {"default": n, "tiers": {"name": n}}')
    whole(f"{name}.default", limits["default"], minimum=1)
    for tier, most in limits.get("tiers", {}).items():
        whole(f"{name}.tiers.{tier}", most, minimum=1)
