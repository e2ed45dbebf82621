"""Makes jobs of schedules, in passes that are shared with Node's schedulers.

The scheduler that claims a pass writes a request for each schedule that is due into pg-boss's own queue
`__pgboss__send-it`. An occurrence is due if it lies in the last minute. Its request has the schedule's key and that
minute, and a unique index admits it once, however many schedulers write it. Any scheduler forwards the requests that it
finds: it adds the job and completes the request in one transaction.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import orjson

from jobwire.backends.pgboss.connection.errors import Refused
from jobwire.backends.pgboss.connection.pipelined import Call
from jobwire.backends.pgboss.connection.rows import Unreadable
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import number, text
from jobwire.backends.pgboss.produce.add import Adding
from jobwire.backends.pgboss.produce.native_options import columns_of
from jobwire.backends.pgboss.produce.schedules import ScheduleRow
from jobwire.backends.pgboss.queues import QueueRow, Queues
from jobwire.backends.pgboss.work.claims import PgClaim, read_claims
from jobwire.backends.pgboss.work.fence import fence_of
from jobwire.backends.uuid7 import new_id
from jobwire.cron import Cron
from jobwire.errors import InvalidOption

_log = logging.getLogger("jobwire.pgboss")

SEND_IT = "__pgboss__send-it"
_WINDOW = timedelta(seconds=60)
_TOGETHER = 50
_LEASE = 60


class CronPass:
    """Runs the passes of one store."""

    def __init__(self, store: Store, queues: Queues, adding: Adding) -> None:
        self._store = store
        self._queues = queues
        self._adding = adding
        self._complained: set[tuple[str, str, str]] = set()

    async def run(self, every: float) -> None:
        """Makes the pass if it is due and no other scheduler has claimed it, and forwards the requests that wait."""
        if not self._store.layout.has("version.cron_on"):
            return
        turn = await self._store.ask("cron_claim", {"every": number(every)})
        for (last_pass,) in turn:
            await self._write(last_pass)
        send_it = await self._queues.find(SEND_IT)
        if send_it is not None:
            while await self._forward(send_it):
                pass

    async def _write(self, last_pass: datetime | None) -> None:
        rows = [ScheduleRow.of(row) for row in await self._store.ask("schedules", {})]
        requests = [request for row in rows for request in self._requests(row, last_pass)]
        if not requests:
            return
        if await self._queues.find(SEND_IT) is None:
            await self._queues.create(SEND_IT, {"policy": "standard"})
        queue = await self._queues.reread(SEND_IT)
        if queue is not None:
            await self._adding.insert(queue, requests)

    def _requests(self, row: ScheduleRow, last_pass: datetime | None) -> list[dict[str, Any]]:
        if row.kind != "cron":
            return []
        try:
            cron = Cron.parse(row.cron, repeats=True)
            found = [_latest(cron, row.now, row.timezone, row.now - _WINDOW)]
            if row.options.get("missed") == "once" and last_pass is not None and last_pass < row.now - _WINDOW:
                earliest = max(last_pass, row.created or last_pass)
                found.append(_latest(cron, row.now - _WINDOW, row.timezone, earliest))
            return [_request(row, moment) for moment in found if moment is not None]
        except (InvalidOption, ValueError, RecursionError) as error:
            if (row.name, row.key, row.cron) not in self._complained:
                self._complained.add((row.name, row.key, row.cron))
                _log.warning("schedule %r of queue %r can't be read, so it makes no jobs: %s", row.key, row.name, error)
            return []

    async def _forward(self, send_it: QueueRow) -> bool:
        """Adds the jobs of requests that wait. Returns True if there may be more."""
        fetch = self._store.statements.get("fetch", send_it.table)
        values = {"queue": text(SEND_IT), "count": number(_TOGETHER), "lease": number(_LEASE)}
        [rows] = await self._store.run([(fetch, values)])
        for claim in read_claims(self._store, send_it, rows, lease=_LEASE):
            await self._send(send_it, claim)
        return len(rows) == _TOGETHER

    async def _send(self, send_it: QueueRow, claim: PgClaim) -> None:
        data = claim.job.data
        request = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        name, key = str(request.get("name", "")), str(request.get("key") or "")
        queue = await self._queues.find(name) if name else None
        done: Call = (
            self._store.statements.get("complete", send_it.table),
            {**fence_of(SEND_IT, [claim]), "outputs": b"[null]"},
        )
        if queue is None:
            _log.warning("schedule %r is due, but its queue %r does not exist: no job was added", key, name)
            await self._store.run([done])
            return
        options = request.get("options")
        row = columns_of(cast("dict[str, Any]", options) if isinstance(options, dict) else {})
        row.setdefault("id", new_id())
        try:
            row["data"] = _json(request.get("data"))
            await self._store.run(
                [
                    self._adding.call(queue, [row]),
                    (
                        self._store.statements.get("schedule_sent"),
                        {"queue": text(name), "key": text(key), "id": text(row["id"])},
                    ),
                    done,
                ]
            )
        except (Refused, ValueError, RecursionError) as error:
            _log.warning("schedule %r is due, but queue %r refused its job, which is dropped: %s", key, name, error)
            await self._store.run([done])


def _json(value: Any) -> orjson.Fragment:
    """Returns JSON of a value that was read from the database. Its numbers may be longer than orjson can write."""
    return orjson.Fragment(json.dumps(value).encode())


def _latest(cron: Cron, upto: datetime, zone: str, after: datetime) -> datetime | None:
    """Returns the last occurrence up to `upto`, or None if it is not later than `after`."""
    found = datetime.fromtimestamp(cron.latest_ms(int(upto.timestamp() * 1000), zone) / 1000, UTC)
    return found if found > after else None


def _request(row: ScheduleRow, moment: datetime) -> dict[str, Any]:
    if isinstance(row.data, Unreadable):
        raise InvalidOption("data", "…", row.data.reason)
    slot = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:00")
    return {
        "id": new_id(),
        "data": _json({"name": row.name, "key": row.key, "data": row.data, "options": row.options, "slot": slot}),
        "singleton_key": row.name.replace("_", "\\_") + "__" + row.key,
        "singleton_on": slot,
    }
