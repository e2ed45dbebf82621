"""Turns outcomes into statements, and the rows of those into verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobwire.backends.pgboss.codec import failure_output, output_of
from jobwire.backends.pgboss.connection.pipelined import Call, Value
from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import plain_list
from jobwire.backends.pgboss.queues import QueueRow
from jobwire.backends.pgboss.work.claims import PgClaim
from jobwire.backends.pgboss.work.fence import failing, fence_of, json_array
from jobwire.boundary import Claim, Completed, Failed, Outcome, Released, Snoozed, Verdict

_CENTURY = 3e9
"""Seconds. A longer delay could end beyond the times that PostgreSQL can hold."""


@dataclass(slots=True)
class Batch:
    """The claims that one statement settles, and the positions of their outcomes in the call."""

    positions: list[int]
    claims: list[PgClaim]


class Settling:
    """Settles outcomes of one queue's jobs."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name

    def calls(self, queue: QueueRow, outcomes: Sequence[Outcome]) -> tuple[list[Call], list[Batch]]:
        """Returns the statements that settle the outcomes, and the batch of each statement."""
        calls: list[Call] = []
        kinds: list[Batch] = []
        completed = [(position, outcome) for position, outcome in enumerate(outcomes) if isinstance(outcome, Completed)]
        if completed:
            batch = _batch(completed)
            outputs = json_array([output_of(outcome.result) for _, outcome in completed])
            calls.append(self._call("complete", queue, batch, {"outputs": outputs}))
            kinds.append(batch)
        if len(completed) == len(outcomes):
            return calls, kinds
        failed = [(position, outcome) for position, outcome in enumerate(outcomes) if isinstance(outcome, Failed)]
        if failed:
            batch = _batch(failed)
            values = failing(
                [failure_output(fault.error, fault.stack) for _, fault in failed],
                [fault.final for _, fault in failed],
                [fault.delay for _, fault in failed],
                [1 if self._store.layout.has("heartbeat_seconds") else 0] * len(failed),
            )
            calls.append(self._call("fail_or_retry", queue, batch, values))
            kinds.append(batch)
        back = [(position, one) for position, one in enumerate(outcomes) if isinstance(one, (Released, Snoozed))]
        if back:
            batch = _batch(back)
            waits = plain_list([min(one.delay, _CENTURY) if isinstance(one, Snoozed) else None for _, one in back])
            values = {"waits": waits, "own_channel": self._store.own_channel}
            calls.append(self._call("release_or_snooze", queue, batch, values))
            kinds.append(batch)
        return calls, kinds

    def _call(self, name: str, queue: QueueRow, batch: Batch, values: Mapping[str, Value]) -> Call:
        return self._store.statements.get(name, queue.table), {**fence_of(self._name, batch.claims), **values}

    def verdicts(
        self, outcomes: Sequence[Outcome], kinds: Sequence[Batch], answers: Sequence[Sequence[Row]]
    ) -> list[Verdict]:
        """Returns a verdict for each outcome, from the rows of the statements. An outcome without a row is lost."""
        verdicts = [Verdict.LOST] * len(outcomes)
        for batch, rows in zip(kinds, answers, strict=False):
            if not rows:
                continue
            settled = {row[0]: row for row in rows}
            for position in batch.positions:
                outcome = outcomes[position]
                # A job may be in a batch twice. Only the first outcome can have been settled, so its row is taken out.
                row = settled.pop(outcome.claim.job.id, None)
                if row is not None:
                    verdicts[position] = _verdict(outcome, row)
        return verdicts


def own(claim: Claim) -> PgClaim:
    """Returns the claim with its type of this backend."""
    assert isinstance(claim, PgClaim)  # noqa: S101 - made by this backend
    return claim


def _batch(numbered: Sequence[tuple[int, Outcome]]) -> Batch:
    return Batch([position for position, _ in numbered], [own(outcome.claim) for _, outcome in numbered])


def _verdict(outcome: Outcome, row: Row) -> Verdict:
    match outcome:
        case Completed():
            return Verdict.COMPLETED
        case Failed():
            return Verdict.RETRIED if row[1] == "retry" else Verdict.FAILED
        case Released():
            return Verdict.RELEASED
        case Snoozed():
            return Verdict.SNOOZED
