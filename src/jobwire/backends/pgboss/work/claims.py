"""Claims of pg-boss jobs, and the transaction that a handler may take for writes that commit with its job.

A claim differs from every other claim of the same job by its attempt and the time of its start. pg-boss itself compares
the attempt only, which stays the same when a job is released without being charged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import psycopg

from jobwire.backends.pgboss.connection import caller_transaction
from jobwire.backends.pgboss.connection.errors import Refused, failure, sqlstate_of
from jobwire.backends.pgboss.connection.pipelined import Call
from jobwire.backends.pgboss.connection.rows import Row, Unreadable
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.queues import QueueRow
from jobwire.backends.pgboss.work.handler_connections import Lent
from jobwire.boundary import Claim, Completed, Failed, Outcome, Released, Verdict
from jobwire.errors import JobwireError, LostLock
from jobwire.model import Job, State


@dataclass(slots=True, eq=False)
class PgClaim(Claim):
    """A claim with the values that settling it needs."""

    attempt: int = 0
    started: str = ""
    own_heartbeat: int | None = None
    """The job's own heartbeat, which it gets back when the claim ends."""
    store: Store | None = None
    lapsed: bool = False
    """True if another client recovered the job from a worker that died, and this is the first claim since."""
    ended: bool = False
    """Its outcome is being settled: a thread that goes on regardless gets no transaction any more."""
    lent: Lent | None = None
    blocking: bool = False
    """True if other jobs wait for this one. Known once it has been committed."""
    committed: Verdict | Outcome | None = None
    """The result of the commit, kept in case the call that it was part of is repeated."""
    carrier: Any = None
    """The value of the column `trace_context`, which a producer may have filled with anything."""

    @property
    def trace_context(self) -> Mapping[str, str]:
        """The headers, which Node pg-boss stores as an object if it was given `propagateContext: true`."""
        found: Any = self.carrier
        headers = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        return {name: value for name, value in headers.items() if isinstance(value, str)}

    @property
    def transactional(self) -> bool:
        return self.lent is not None or self.committed is not None

    async def transaction(self, *, blocking: bool) -> Lent:
        """Returns a connection in a transaction that commits with the job's completion, or not at all."""
        assert self.store is not None  # noqa: S101 - every claim of a worker has it
        if self.lent is None:
            lent = await self.store.lend(blocking=blocking)
            if self.lent is not None or self.ended:  # asked for twice at once, or too late
                await self.store.lending.roll_back(lent)
            else:
                self.lent = lent
        if self.ended or self.lent is None:
            raise LostLock(f"job {self.job.id!r} is no longer run here: it has no transaction any more")
        return self.lent

    async def commit(self, outcome: Completed, complete: Call) -> Verdict | Outcome:
        """Completes the job and commits what the handler wrote, both or neither. Returns the verdict, or the outcome to
        settle instead.

        If the connection is lost during the commit, its result is unknown. The job is then released: if the commit has
        happened, the release changes nothing, and if not, the job runs again, as its writes are gone too.
        """
        if self.committed is not None:
            return self.committed
        connection, self.lent = self.lent, None
        assert connection is not None  # noqa: S101 - asked only of a claim that has borrowed
        assert self.store is not None  # noqa: S101 - as above
        lending, where = self.store.lending, self.store.where
        self.committed = Released(self)
        landed = False
        try:
            async with asyncio.timeout(lending.within):
                rows = await caller_transaction.run(connection, complete, where)
            await (lending.commit(connection) if rows else lending.roll_back(connection))
            self.committed = Verdict.COMPLETED if rows else Verdict.LOST
            self.blocking = bool(rows and rows[0][1])
            landed = True
        except (psycopg.Error, JobwireError, TimeoutError) as error:
            told = error if isinstance(error, JobwireError) else failure(where, str(error), sqlstate_of(error))
            if isinstance(told, Refused):  # the handler's own doing: a constraint, a statement that had failed
                self.committed = Failed(outcome.claim, f"the job's transaction could not be committed: {told}")
        finally:
            if not landed:
                await lending.drop(connection)
        return self.committed

    async def roll_back(self) -> None:
        connection, self.lent = self.lent, None
        if connection is not None and self.store is not None:
            await self.store.lending.roll_back(connection)


_LAST_ATTEMPT = 2**31 - 1
_EARLIEST = datetime.min.replace(tzinfo=UTC)
"""Stands for a time that Python can't hold: -infinity, or before year 1."""


def read_claims(
    store: Store, queue: QueueRow, rows: list[Row], *, lease: int, worker_timeout: float | None = None
) -> list[PgClaim]:
    """Returns the claims of rows of `fetch.sql`, in the order in which they should start."""
    name = queue.name
    usual = queue.expire_seconds
    claims: list[PgClaim] = []
    for row in rows:
        (
            job_id,
            data,
            priority,
            attempt,
            attempts,
            expire,
            created,
            due,
            started,
            key,
            heartbeat,
            group,
            carrier,
            lapsed,
        ) = row
        if lapsed and heartbeat == lease:
            heartbeat = None  # the lease of the worker that died, not the job's own
        doomed = None
        if isinstance(data, Unreadable):
            doomed, data = f"data: {data.reason}", None
        elif attempt == _LAST_ATTEMPT:
            doomed = f"retry_count: {attempt} leaves no number for another attempt"
        job = Job(
            id=job_id, queue=name, name=name, data=data, state=State.ACTIVE, native_state="active", priority=priority,
            attempts=attempts, attempts_made=attempt, created_at=created, run_at=due,
            started_at=datetime.fromisoformat(started),
            raw={"singleton_key": key, "group_id": group, "expire_seconds": expire},
        )  # fmt: skip
        # Where the job's limit is the queue's default, the worker's own timeout counts.
        own = None if worker_timeout is not None and expire == usual else float(expire)
        claim = PgClaim(job, f"{attempt}:{started}", own, doomed, 0.0, attempt, started, heartbeat, store, lapsed)
        claim.carrier = carrier
        claims.append(claim)
    if len(claims) > 1:
        claims.sort(key=_order)
    return claims


def _order(claim: PgClaim) -> tuple[int, datetime]:
    return -claim.job.priority, claim.job.created_at or _EARLIEST
