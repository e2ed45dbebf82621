"""Chooses the statement that claims jobs of a queue, by the queue's policy and the worker's options."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from jobwire.backends.pgboss.connection.pipelined import Call, Statement, Value
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import number, text
from jobwire.backends.pgboss.queues import QueueRow
from jobwire.backends.pgboss.worker_options import WorkerOptions

_BY_POLICY = {
    "singleton": ("one_of_key", "singleton"),
    "stately": ("one_of_key", "stately"),
    "key_strict_fifo": ("fifo",),
}


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """The statement with which one worker claims from one queue, and the values that stay the same in every claim."""

    statement: Statement
    values: dict[str, Value]
    turn: Statement | None
    """The lock that makes workers with a limit of groups claim one after the other. Without it, two workers that read
    at the same moment, with a job of higher priority added in between, would claim more of its group than may run."""

    @classmethod
    def of(cls, queue: QueueRow, options: WorkerOptions, store: Store, *, rate_limited: bool = False) -> FetchPlan:
        features = [*_BY_POLICY.get(queue.policy, ())]
        if options.groupConcurrency is not None and store.layout.has("group_id"):
            features.append("grouped")
        if rate_limited and options.keyRate is not None:
            features += ["rate_limited", "rate_by_group" if options.keyRateBy == "group" else "rate_by_key"]
        name = "fetch_keyed" if features else "fetch"
        if options.minPriority is not None:
            features.append("min_priority")
        if options.maxPriority is not None:
            features.append("max_priority")
        values: dict[str, Value] = {
            "min_priority": number(options.minPriority),
            "max_priority": number(options.maxPriority),
            "tiers": orjson.dumps(dict(options.tiers)),
            "most": number(options.most_of_group),
            "most_starts": number(options.keyRate.jobs if options.keyRate is not None else None),
        }
        turn = store.statements.get("group_lock") if "grouped" in features else None
        return cls(store.statements.get(name, queue.table, store.features(*features)), values, turn)

    def calls(self, queue: str, count: int, lease: bytes) -> list[Call]:
        """Returns the statements of a claim. The last one returns the jobs."""
        values = {**self.values, "queue": text(queue), "count": number(count), "lease": lease}
        claim = (self.statement, values)
        return [claim] if self.turn is None else [(self.turn, values), claim]
