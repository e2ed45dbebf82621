"""The duties of a worker, which it shares with every other supervisor of the schema, Node's too."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.upkeep.cron import CronPass
from jobwire.backends.pgboss.upkeep.recover import lease_of
from jobwire.backends.pgboss.upkeep.supervise import Supervision
from jobwire.backends.pgboss.worker_options import WorkerOptions
from jobwire.boundary import ConsumerSettings, Duty, DutyReport


class Duties:
    """Makes the duties of the workers of one store."""

    def __init__(self, store: Store, cron: CronPass, supervision: Supervision) -> None:
        self._store = store
        self._cron = cron
        self._supervision = supervision

    def of(self, settings: ConsumerSettings, options: WorkerOptions) -> Sequence[Duty]:
        """Returns the duties of one worker. Each is claimed in the database, so one supervisor does it in each
        period."""

        lease = lease_of(settings)

        async def recover() -> DutyReport:
            return DutyReport(await self._supervision.recovery.run(settings.queue, settings.max_stalled, lease))

        async def supervise() -> DutyReport:
            return DutyReport(note=await self._supervision.run(options, settings.max_stalled, lease))

        async def flows() -> DutyReport:
            await self._supervision.unblock(options.flowIntervalSeconds)
            return DutyReport()

        async def cron() -> DutyReport:
            await self._cron.run(options.cronMonitorIntervalSeconds)
            return DutyReport()

        duties = [Duty("recover", settings.recover_every, recover)]
        if self._store.layout.is_newer:
            return duties
        if options.supervise:
            every = min(options.monitorIntervalSeconds, options.maintenanceIntervalSeconds)
            duties.append(Duty("supervise", every, supervise))
            if self._store.layout.has("version.flow_on"):
                duties.append(Duty("unblock flows", options.flowIntervalSeconds, flows))
        if options.schedule:
            # More often than the interval, since the pass is claimed from the time of the last one, which may be late.
            duties.append(Duty("make jobs of schedules", options.cronMonitorIntervalSeconds / 3, cron))
        return duties
