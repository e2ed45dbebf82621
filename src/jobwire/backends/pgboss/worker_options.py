"""The native options of a worker as its consumer and its duties read them: by pg-boss's names, in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobwire.checks import seconds
from jobwire.native import PgBossWorker, of_kind
from jobwire.rate import Rate


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of one worker, checked."""

    groupConcurrency: int | Mapping[str, Any] | None = None  # noqa: N815 - native names, here and below
    minPriority: int | None = None  # noqa: N815
    maxPriority: int | None = None  # noqa: N815
    keyRate: Rate | None = None  # noqa: N815
    keyRateBy: str = "singletonKey"  # noqa: N815
    poll: float = 1.0
    supervise: bool = True
    schedule: bool = True
    monitorIntervalSeconds: float = 60.0  # noqa: N815
    maintenanceIntervalSeconds: float = 86_400.0  # noqa: N815
    cronMonitorIntervalSeconds: float = 30.0  # noqa: N815
    flowIntervalSeconds: float = 5.0  # noqa: N815
    warningQueueSize: int = 10_000  # noqa: N815
    persistWarnings: bool = False  # noqa: N815
    rememberAttempts: float | None = None  # noqa: N815 - jobwire's own

    @classmethod
    def of(cls, given: object) -> WorkerOptions:
        """Returns the options that `Worker(native=given)` means. Raises InvalidOption for wrong ones."""
        native = of_kind(PgBossWorker, given, "pg-boss")
        return cls(
            groupConcurrency=native.group_concurrency,
            minPriority=native.min_priority,
            maxPriority=native.max_priority,
            keyRate=native.key_rate,
            keyRateBy=native.key_rate_by,
            poll=seconds("poll", native.poll),
            supervise=native.supervise,
            schedule=native.schedule,
            monitorIntervalSeconds=seconds("monitor_interval", native.monitor_interval),
            maintenanceIntervalSeconds=seconds("maintenance_interval", native.maintenance_interval),
            cronMonitorIntervalSeconds=seconds("cron_monitor_interval", native.cron_monitor_interval),
            flowIntervalSeconds=seconds("flow_interval", native.flow_interval),
            warningQueueSize=native.warning_queue_size,
            persistWarnings=native.persist_warnings,
            rememberAttempts=None
            if native.remember_attempts is None
            else seconds("remember_attempts", native.remember_attempts),
        )

    @property
    def most_of_group(self) -> int | None:
        """The number of jobs of one group that may run at once, for groups without a tier."""
        limit = self.groupConcurrency
        if limit is None or isinstance(limit, int):
            return limit
        return int(limit["default"])

    @property
    def tiers(self) -> Mapping[str, int]:
        """The same number for each tier of groups."""
        limit = self.groupConcurrency
        return {} if limit is None or isinstance(limit, int) else limit.get("tiers", {})
