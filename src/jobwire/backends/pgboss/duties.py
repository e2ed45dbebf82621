"""What a pg-boss worker does now and then beside its jobs, shared with every other supervisor of the schema."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backend import ConsumerSettings, Duty, DutyReport
from jobwire.backends.pgboss.codec import failure_output
from jobwire.backends.pgboss.cron_pass import CronPass
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.pgboss.schema import own_channel
from jobwire.backends.pgboss.store import Store
from jobwire.backends.pgboss.supervision import Supervision
from jobwire.backends.pgboss.values import number, plain_list, text
from jobwire.backends.pgboss.wire import Value
from jobwire.backends.pgboss.worker_options import WorkerOptions

STALLED = "job stalled more than allowable limit"


class Duties:
    def __init__(self, store: Store, queues: Queues, cron: CronPass, supervision: Supervision) -> None:
        self._store = store
        self._queues = queues
        self._cron = cron
        self._supervision = supervision
        self._own_bell = text(own_channel(store.name))

    def of(self, settings: ConsumerSettings, options: WorkerOptions) -> Sequence[Duty]:
        """The duties of one worker. Claims in the database see to it that each is done once in its period."""

        async def recover() -> DutyReport:
            return DutyReport(await self._recover(settings))

        async def supervise() -> DutyReport:
            return DutyReport(note=await self._supervision.run(options))

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
            # More often than the interval, since a pass that another scheduler made late would shift ours.
            duties.append(Duty("make jobs of schedules", options.cronMonitorIntervalSeconds / 3, cron))
        return duties

    async def _recover(self, settings: ConsumerSettings) -> list[str]:
        queue = await self._queues.find(settings.queue)
        if queue is None or not self._store.has_side or not self._store.layout.has("heartbeat_on"):
            return []
        values = {"queue": text(queue.name), "most": number(settings.max_stalled), "own_bell": self._own_bell}
        rows = await self._store.ask("recover", values, table=queue.table)
        doomed = [(job_id, attempt, started) for job_id, back, attempt, started, _ in rows if not back]
        if doomed:
            ids, attempts, starts = zip(*doomed, strict=True)
            fail: dict[str, Value] = {
                "queue": text(queue.name),
                "ids": plain_list(ids),
                "attempts": plain_list(attempts),
                "starts": ('{"' + '","'.join(starts) + '"}').encode(),
                "heartbeats": plain_list([None] * len(ids)),
                "outputs": b"[" + b",".join([failure_output(STALLED, "")] * len(ids)) + b"]",
                "finals": plain_list(["true"] * len(ids)),
                "waits": plain_list([None] * len(ids)),
            }
            await self._store.ask("fail", fail, table=queue.table)
        return [row[0] for row in rows]
