"""Turns outcomes into statements, and the rows of those into verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobwire.backends.pgboss.codec import CAN_NOT_HOLD, failure_output, output_of, storable
from jobwire.backends.pgboss.connection.pipelined import Call, Value
from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import plain_list
from jobwire.backends.pgboss.queues import QueueRow
from jobwire.backends.pgboss.work import remember
from jobwire.backends.pgboss.work.claims import PgClaim
from jobwire.backends.pgboss.work.fence import failing, fence_of, json_array
from jobwire.backends.pgboss.work.remember import Memory
from jobwire.boundary import Claim, Completed, Failed, Outcome, Released, Snoozed, Verdict

_CENTURY = 3e9
"""Seconds. A longer delay could end beyond the times that PostgreSQL can hold."""


@dataclass(slots=True)
class Batch:
    """The claims that one statement settles, and the positions of their outcomes in the call."""

    statement: str
    positions: list[int]
    claims: list[PgClaim]


class Settling:
    """Settles outcomes of one queue's jobs."""

    def __init__(self, store: Store, name: str, memory: Memory | None = None) -> None:
        self._store = store
        self._name = name
        self._memory = memory

    def calls(self, queue: QueueRow, outcomes: Sequence[Outcome]) -> tuple[list[Call], list[Batch]]:
        """Returns the statements that settle the outcomes, and the batch of each statement."""
        calls: list[Call] = []
        kinds: list[Batch] = []
        completed = [(position, outcome) for position, outcome in enumerate(outcomes) if isinstance(outcome, Completed)]
        if completed:
            batch = _batch("complete", completed)
            outputs = json_array([output_of(outcome.result) for _, outcome in completed])
            calls.append(self._call(queue, batch, {"outputs": outputs}))
            kinds.append(batch)
        if len(completed) == len(outcomes):
            return calls, kinds
        failed = [(position, outcome) for position, outcome in enumerate(outcomes) if isinstance(outcome, Failed)]
        if failed:
            batch = _batch("fail_or_retry", failed)
            values = failing(
                [failure_output(fault.error, fault.stack) for _, fault in failed],
                [fault.final for _, fault in failed],
                [fault.delay for _, fault in failed],
                [1 if self._store.layout.has("heartbeat_seconds") else 0] * len(failed),
            )
            calls.append(self._call(queue, batch, values))
            kinds.append(batch)
            if self._memory is not None:
                remembered = Batch(remember.STATEMENT, [], batch.claims)
                calls.append(self._call(queue, remembered, self._memory.values([fault for _, fault in failed])))
                kinds.append(remembered)
        back = [(position, one) for position, one in enumerate(outcomes) if isinstance(one, (Released, Snoozed))]
        if back:
            batch = _batch("release_or_snooze", back)
            waits = plain_list([min(one.delay, _CENTURY) if isinstance(one, Snoozed) else None for _, one in back])
            values = {"waits": waits, "own_channel": self._store.own_channel}
            calls.append(self._call(queue, batch, values))
            kinds.append(batch)
        return calls, kinds

    def _call(self, queue: QueueRow, batch: Batch, values: Mapping[str, Value]) -> Call:
        return self._store.statements.get(batch.statement, queue.table), {
            **fence_of(self._name, batch.claims),
            **values,
        }

    def verdicts(
        self, outcomes: Sequence[Outcome], kinds: Sequence[Batch], answers: Sequence[Sequence[Row]]
    ) -> list[Verdict]:
        """Returns a verdict for each outcome, from the rows of the statements. An outcome without a row is lost."""
        verdicts = [Verdict.LOST] * len(outcomes)
        for batch, rows in zip(kinds, answers, strict=False):
            if not rows:
                continue
            settled = {job_id: rest for job_id, *rest in rows}
            for position in batch.positions:
                outcome = outcomes[position]
                # A job may be in a batch twice. Only the first outcome can have been settled, so its row is taken out.
                rest = settled.pop(outcome.claim.job.id, None)
                if rest is not None:
                    verdicts[position] = _verdict(outcome, rest)
        return verdicts


def ended_parents(kinds: Sequence[Batch], answers: Sequence[Sequence[Row]]) -> tuple[list[str], list[str]]:
    """Returns the ids of jobs that others wait for: those that have completed, and those that have failed for good."""
    completed: list[str] = []
    failed: list[str] = []
    for batch, rows in zip(kinds, answers, strict=False):
        if batch.statement == "complete":
            completed += [job_id for job_id, blocking in rows if blocking]
        elif batch.statement == "fail_or_retry":
            failed += failed_parents(rows)
    return completed, failed


def failed_parents(rows: Sequence[Row]) -> list[str]:
    """Returns, from the rows of `fail_or_retry`, the ids of jobs that have failed for good and that others wait for."""
    return [job_id for job_id, state, blocking in rows if blocking and state == "failed"]


def checked(outcome: Outcome) -> Outcome:
    """Returns the outcome, or a failure if the database can't hold the result: it must not fail the whole batch."""
    if isinstance(outcome, Completed) and not storable(outcome.result):
        return Failed(outcome.claim, f"the result can't be stored: {CAN_NOT_HOLD}", final=True)
    return outcome


def own(claim: Claim) -> PgClaim:
    """Returns the claim with its type of this backend."""
    assert isinstance(claim, PgClaim)  # noqa: S101 - made by this backend
    return claim


def _batch(statement: str, numbered: Sequence[tuple[int, Outcome]]) -> Batch:
    return Batch(statement, [position for position, _ in numbered], [own(outcome.claim) for _, outcome in numbered])


def _verdict(outcome: Outcome, rest: Sequence[Any]) -> Verdict:
    """Returns the verdict on an outcome that was settled, from what follows the id in its row."""
    match outcome:
        case Completed():
            return Verdict.COMPLETED
        case Failed():
            state, _ = rest
            return Verdict.RETRIED if state == "retry" else Verdict.FAILED
        case Released():
            return Verdict.RELEASED
        case Snoozed():
            return Verdict.SNOOZED
