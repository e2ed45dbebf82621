"""Features that only pg-boss has: settings of queues, publish and subscribe, flows, redrive, changing jobs that wait.

    async with connect("pgboss+postgresql://…") as connection:
        boss = Boss(connection)
        await boss.create_queue("mail", policy="stately", retryLimit=3, deadLetter="mail-dead")

Names of settings and options are pg-boss's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import orjson

from jobwire import codec as json_codec
from jobwire.backends.pgboss.backend import PgBossBackend
from jobwire.backends.pgboss.connection.values import moment, number, plain_list, text
from jobwire.backends.pgboss.native.change_jobs import Changing, Upserted
from jobwire.backends.pgboss.native.flows import GraphJob, add_flow
from jobwire.backends.pgboss.operate.drop_queue import drop_queue
from jobwire.backends.pgboss.queues import check_settings
from jobwire.backends.pgboss.rules import check_name
from jobwire.backends.pgboss.worker_options import WorkerOptions
from jobwire.boundary import Added
from jobwire.checks import Seconds
from jobwire.checks import seconds as seconds_of
from jobwire.errors import InvalidOption, StoreRefused
from jobwire.native import PgBossWorker


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue and its settings. `raw` is its whole row, with the counts of the last monitoring."""

    name: str
    policy: str
    partition: bool
    notify: bool
    dead_letter: str | None
    raw: Mapping[str, Any]


class Boss:
    """pg-boss's own features on a Connection (or any object with such a `backend`)."""

    def __init__(self, connection: Any) -> None:
        backend: object = connection.backend
        if not isinstance(backend, PgBossBackend):
            raise InvalidOption("connection", connection, "must be a connection to pg-boss")
        self._backend = backend
        self._store = backend.store
        self._queues = backend.queues
        self._changing = Changing(backend.store, backend.queues, backend.adding)

    # --- queues -----------------------------------------------------------------------------------------------------

    async def create_queue(self, name: str, **settings: Any) -> None:
        """Makes a queue, with pg-boss's defaults for settings that are not given. Leaves one that exists as it is."""
        check_name("queue", name)
        await self._queues.create(name, {"policy": "standard", **check_settings(settings)})
        self._queues.forget(name)

    async def update_queue(self, name: str, **settings: Any) -> None:
        """Changes settings of a queue for jobs that are added later. Policy and partition can't be changed."""
        for fixed in ("policy", "partition"):
            if fixed in settings:
                raise InvalidOption(fixed, settings[fixed], "can't be changed after the queue was made")
        values = {"queue": text(name), "options": orjson.dumps(check_settings(settings))}
        if not await self._store.ask("update_queue", values):
            raise StoreRefused(f"there is no queue {name!r}")
        self._queues.forget(name)

    async def delete_queue(self, name: str) -> None:
        """Deletes a queue with its jobs, schedules and subscriptions."""
        await drop_queue(self._store, self._queues, name)

    async def queues(self) -> list[QueueInfo]:
        """Returns every queue, sorted by name."""
        return [
            QueueInfo(name, row["policy"], row["partition"], row.get("notify", False), row["dead_letter"], row)
            for name, row in await self._store.ask("queues", {})
        ]

    # --- publish and subscribe --------------------------------------------------------------------------------------

    async def subscribe(self, event: str, queue: str) -> None:
        """Subscribes the queue: it gets a copy of every job that is published under the event from now on."""
        await self._store.ask("subscribe", {"event": text(event), "queue": text(queue)})

    async def unsubscribe(self, event: str, queue: str) -> bool:
        """Ends the subscription. Returns False if there was none."""
        return bool(await self._store.ask("unsubscribe", {"event": text(event), "queue": text(queue)}))

    async def publish(self, event: str, data: Any = None, **options: Any) -> dict[str, Added]:
        """Adds a copy of the job to every queue that has subscribed to the event. Returns the result by queue."""
        rows = await self._store.ask("subscribers", {"event": text(event)})
        return {name: await self._changing.send(name, data, options) for (name,) in rows}

    # --- sending with a limit ---------------------------------------------------------------------------------------

    async def send(self, queue: str, data: Any = None, **options: Any) -> Added:
        """Adds a job with pg-boss's own options, as Node's `send` does."""
        return await self._changing.send(queue, data, options)

    async def throttled(self, queue: str, data: Any, seconds: Seconds, key: str | None = None, **options: Any) -> Added:
        """Adds a job if none of its key was added in the same slot of `seconds`. Otherwise its status is THROTTLED."""
        slot = {"singletonSeconds": _whole_seconds(seconds), "singletonKey": key}
        return await self._changing.send(queue, data, {**options, **slot})

    async def debounced(self, queue: str, data: Any, seconds: Seconds, key: str | None = None, **options: Any) -> Added:
        """Adds a job as `throttled` does, but puts the first one that it would refuse into the next slot."""
        return await self._changing.debounce(queue, data, _whole_seconds(seconds), key, options)

    # --- jobs that wait ---------------------------------------------------------------------------------------------

    async def update(
        self,
        queue: str,
        *,
        id: str | None = None,  # noqa: A002 - the name it has everywhere else
        singletonKey: str | None = None,  # noqa: N803 - pg-boss's name
        match: Literal["newest", "oldest", "all"] = "newest",
        **changes: Any,
    ) -> list[str]:
        """Changes `data` and options of jobs that wait, chosen by id or by key. Returns their ids."""
        return await self._changing.update(queue, id, singletonKey, match, changes)

    async def upsert(self, queue: str, singletonKey: str, data: Any = None, **options: Any) -> Upserted:  # noqa: N803
        """Changes the job of this key that waits, or adds one."""
        return await self._changing.upsert(queue, singletonKey, data, options)

    async def resume(self, queue: str, job_ids: Sequence[str]) -> int:
        """Makes cancelled jobs wait again. Returns the number of them."""
        acted = await self._backend.admin.act("resume", queue, job_ids)
        return sum(one.value == "done" for one in acted)

    # --- flows and dead letters -------------------------------------------------------------------------------------

    async def flow(self, jobs: Sequence[GraphJob]) -> dict[str, str]:
        """Adds jobs that wait for others of the same call, all or none. Returns the id of each by its ref."""
        return await add_flow(self._store, self._queues, self._backend.adding, jobs)

    async def redrive(
        self,
        queue: str,
        *,
        destination: str | None = None,
        source: str | None = None,
        data: Any = None,
        created_before: datetime | None = None,
        ids: Sequence[str] | None = None,
        limit: int = 1000,
    ) -> int:
        """Moves jobs from a dead letter queue back to the queues that they came from, oldest first. Returns the number
        of them."""
        row = await self._queues.get(queue)
        values = {
            "queue": text(queue), "destination": text(destination), "source": text(source),
            "data": None if data is None else json_codec.dumps(data), "before": moment(created_before),
            "ids": None if ids is None else plain_list(ids), "limit": number(limit),
            "own_channel": self._store.own_channel,
        }  # fmt: skip
        [(moved, _)] = await self._store.ask("redrive", values, table=row.table)
        return int(moved)

    async def supervise(self, native: PgBossWorker | None = None) -> str:
        """Makes one pass of monitoring and maintenance now, over the queues that are due. Returns a text that describes
        what was done, empty if there was nothing to do."""
        options = WorkerOptions.of(native)
        words = await self._backend.supervision.run(options)
        if self._store.layout.has("version.flow_on"):
            await self._backend.supervision.unblock(options.flowIntervalSeconds)
        return words


def _whole_seconds(value: Seconds) -> int:
    number = seconds_of("seconds", value, minimum=1)
    if not number.is_integer():
        raise InvalidOption("seconds", value, "must be a whole number of seconds")
    return int(number)
