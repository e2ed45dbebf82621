"""Options that only pg-boss has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from jobwire.checks import Seconds, seconds, whole, yes_or_no
from jobwire.errors import InvalidOption
from jobwire.native.made import native
from jobwire.rate import Rate, rate_of


@native
class PgBossWorker:
    """Options of one worker. Those that pg-boss has too are named as there, in snake_case."""

    group_concurrency: int | Mapping[str, Any] | None = None
    """Jobs of one group that run at a time, over all workers: n, or {"default": n, "tiers": {"gold": n}}."""
    min_priority: int | None = None
    max_priority: int | None = None
    key_rate: Rate | None = None
    """The limit on starts per key, over all workers, e.g. Rate(10, per=60). Further jobs wait. pg-boss has no such
    limit."""
    key_rate_by: Literal["singletonKey", "group"] = "singletonKey"
    """The field of a job that `key_rate` counts by."""
    poll: Seconds = 1.0
    """Seconds between polls of a queue that does not send notifications."""
    supervise: bool = True
    """Takes part in monitoring and maintenance, together with Node's supervisors."""
    schedule: bool = True
    """Takes part in adding the jobs of schedules."""
    monitor_interval: Seconds = 60.0
    maintenance_interval: Seconds = 86_400.0
    cron_monitor_interval: Seconds = 30.0
    flow_interval: Seconds = 5.0
    warning_queue_size: int = 10_000
    persist_warnings: bool = False
    remember_attempts: Seconds | None = None
    """Seconds for which failed attempts that another follows are remembered, with their times and errors, for the
    pipeline. pg-boss keeps the last attempt only."""

    def __post_init__(self) -> None:
        for name in ("supervise", "schedule", "persist_warnings"):
            yes_or_no(name, getattr(self, name))
        for name in ("min_priority", "max_priority"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), minimum=-(2**31))
        for name in ("poll", "monitor_interval", "maintenance_interval", "cron_monitor_interval", "flow_interval"):
            seconds(name, getattr(self, name), minimum=0.05)
        if self.remember_attempts is not None:
            seconds("remember_attempts", self.remember_attempts, minimum=1)
        whole("warning_queue_size", self.warning_queue_size, minimum=1)
        rate_of("key_rate", self.key_rate)
        if self.key_rate_by not in ("singletonKey", "group"):
            raise InvalidOption("key_rate_by", self.key_rate_by, "must be singletonKey or group")
        if self.group_concurrency is not None:
            _check_groups(self.group_concurrency)


def _check_groups(value: object) -> None:
    if not isinstance(value, Mapping):
        whole("group_concurrency", value, minimum=1)
        return
    limits = cast("Mapping[str, Any]", value)
    tiers = limits.get("tiers", {})
    if not set(limits) <= {"default", "tiers"} or "default" not in limits or not isinstance(tiers, Mapping):
        raise InvalidOption("group_concurrency", dict(limits), 'must be n or {"default": n, "tiers": {"name": n}}')
    whole("group_concurrency.default", limits["default"], minimum=1)
    for tier, most in cast("Mapping[str, Any]", tiers).items():
        whole(f"group_concurrency.tiers.{tier}", most, minimum=1)
