"""Claims of pg-boss jobs, and the connection that a handler may take for writes that commit with its job.

A claim is told from every other of the same job by its attempt and the moment of its start: pg-boss's own fence is the
attempt alone, which stays the same when a job is handed back uncharged.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from jobwire.backend import Claim, Verdict
from jobwire.backends.pgboss import transactions
from jobwire.backends.pgboss.failure import failure, sqlstate_of
from jobwire.backends.pgboss.queues import QueueRow
from jobwire.backends.pgboss.store import Store
from jobwire.backends.pgboss.wire import Call, Row
from jobwire.model import Job, State


@dataclass(slots=True, eq=False)
class PgClaim(Claim):
    """A claim with what its settling needs."""

    attempt: int = 0
    started: str = ""
    own_heartbeat: int | None = None
    """The job's own heartbeat, to be restored when the lease ends."""
    store: Store | None = None
    _connection: psycopg.AsyncConnection[Any] | None = None

    @property
    def borrowed(self) -> bool:
        return self._connection is not None

    async def connection(self) -> psycopg.AsyncConnection[Any]:
        """A connection in a transaction that commits when the job is completed, and with it, or not at all."""
        assert self.store is not None  # noqa: S101 - every claim of a worker has it
        if self._connection is None:
            self._connection = await self.store.lend()
        return self._connection

    async def commit(self, complete: Call, where: str) -> Verdict:
        """Complete the job and commit what the handler wrote; if the job is no longer ours, neither happens."""
        connection, self._connection = self._connection, None
        assert connection is not None  # noqa: S101 - asked only of a claim that has borrowed
        assert self.store is not None  # noqa: S101 - as above
        try:
            rows = await transactions.run(connection, complete, where)
            await (connection.commit() if rows else connection.rollback())
        except psycopg.Error as error:
            raise failure(where, str(error), sqlstate_of(error)) from error
        finally:
            await self.store.take_back(connection)
        return Verdict.COMPLETED if rows else Verdict.LOST

    async def roll_back(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self.store is not None:
            await self.store.take_back(connection)


def read_claims(store: Store, queue: QueueRow, rows: list[Row]) -> list[PgClaim]:
    """Rows of `sql/fetch` in the order in which they should start."""
    if len(rows) > 1:
        rows.sort(key=_order)
    name = queue.name
    usual = queue.expire_seconds
    claims: list[PgClaim] = []
    for row in rows:
        job_id, data, priority, attempt, limit, expire, created, due, started, key, heartbeat, group = row
        job = Job(
            id=job_id, queue=name, name=name, data=data, state=State.ACTIVE, native_state="active", priority=priority,
            attempts=limit + 1, attempts_made=attempt, created_at=created, run_at=due,
            started_at=datetime.fromisoformat(started),
            raw={"singleton_key": key, "group_id": group, "expire_seconds": expire},
        )  # fmt: skip
        # A limit that only repeats the queue's default leaves room for the worker's own.
        timeout = float(expire) if expire != usual else None
        claims.append(PgClaim(job, f"{attempt}:{started}", timeout, None, 0.0, attempt, started, heartbeat, store))
    return claims


def _order(row: Row) -> tuple[int, Any]:
    return -row[2], row[6]
