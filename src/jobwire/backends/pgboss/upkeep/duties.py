"""The duties of a worker, which it shares with every other supervisor of the schema, Node's too."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.pgboss.upkeep.cron import CronPass
from jobwire.backends.pgboss.upkeep.recover import lease_of
from jobwire.backends.pgboss.upkeep.supervise import Supervision
from jobwire.backends.pgboss.work.dependents import Dependents
from jobwire.backends.pgboss.worker_options import WorkerOptions
from jobwire.boundary import ConsumerSettings, Duty, DutyReport
from jobwire.counted import counted


class Duties:
    """Makes the duties of the workers of one store."""

    def __init__(self, store: Store, queues: Queues, cron: CronPass, supervision: Supervision) -> None:
        self._store = store
        self._cron = cron
        self._supervision = supervision
        self._dependents = Dependents(store, queues)

    def of(self, settings: ConsumerSettings, options: WorkerOptions) -> Sequence[Duty]:
        """Returns the duties of one worker. Each is claimed in the database, so one supervisor does it in each
        period."""

        lease = lease_of(settings)

        async def recover() -> DutyReport:
            recovery, remember = self._supervision.recovery, options.rememberAttempts
            return DutyReport(await recovery.run(settings.queue, settings.max_stalled, lease, remember))

        async def supervise() -> DutyReport:
            return DutyReport(note=await self._supervision.run(options, settings.max_stalled, lease))

        async def flows() -> DutyReport:
            await self._supervision.unblock(options.flowIntervalSeconds)
            return DutyReport()

        async def fail_doomed() -> DutyReport:
            failed = await self._dependents.fail_doomed(settings.queue)
            return DutyReport(note=f"failed {counted(failed, 'job')} that waited for failed ones" if failed else "")

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
            if self._dependents.possible:
                # Not claimed, as the passes are that Node's supervisors share: those leave these jobs blocked.
                duties.append(Duty("fail jobs that wait for failed ones", options.monitorIntervalSeconds, fail_doomed))
        if options.schedule:
            # More often than the interval, since the pass is claimed from the time of the last one, which may be late.
            duties.append(Duty("make jobs of schedules", options.cronMonitorIntervalSeconds / 3, cron))
        return duties
