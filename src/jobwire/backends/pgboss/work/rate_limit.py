"""Rate limits, which pg-boss does not have: a number of starts in a period, per queue and per key. Other jobs wait.

Windows are side data. A window opens with the first start after the last one has closed. Workers with a limit claim one
after the other, each under the lock of the queue's row, so the count is exact over all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobwire.backends.pgboss.connection.pipelined import Call
from jobwire.backends.pgboss.connection.statements import BEGIN, COMMIT
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import number, plain_list, text, text_list
from jobwire.backends.pgboss.queues import QueueRow
from jobwire.backends.pgboss.work.claims import PgClaim
from jobwire.backends.pgboss.work.fetch import FetchPlan
from jobwire.backends.pgboss.worker_options import WorkerOptions
from jobwire.boundary import ConsumerSettings, Outcome, Settled

if TYPE_CHECKING:
    from jobwire.backends.pgboss.work.consumer import PgConsumer

QUEUE_KEY = ""
"""The key of the window that counts for the whole queue."""


def is_wanted(settings: ConsumerSettings, options: WorkerOptions) -> bool:
    """Returns True if the worker has a rate limit."""
    return settings.rate is not None or options.keyRate is not None


async def exchange(
    consumer: PgConsumer, store: Store, queue: QueueRow, outcomes: Sequence[Outcome], *, wanted: int, lease: bytes
) -> Settled:
    """Settles the outcomes, and claims no more jobs than the windows allow."""
    await store.need_side()
    settings, options = consumer.settings, consumer.options
    rate = settings.rate
    calls, kinds = consumer.settling.calls(queue, outcomes)
    name = {"queue": text(queue.name)}
    async with store.connection() as connection:
        begun = await connection.run([(BEGIN, {}), *calls, (store.statements.get("rate_lock"), name)])
        [(started, left)] = begun[-1]
        allowed = wanted if rate is None else min(wanted, rate.jobs - started)
        claims: list[PgClaim] = []
        if allowed > 0:
            fetch = FetchPlan.of(queue, options, store, rate_limited=True)
            found = await connection.run(fetch.calls(queue.name, allowed, lease))
            claims = consumer.claims_of(queue, found[-1])
        counted = _counted(store, queue, settings, options, claims)
        ends = await connection.run(
            [*counted, (store.statements.get("rate_next"), _next(queue, options)), (COMMIT, {})]
        )
    verdicts = await consumer.verdicts(outcomes, kinds, begun[1 : 1 + len(kinds)])
    blocked = 0.0
    if rate is not None and started + len(claims) >= rate.jobs:
        blocked = left if started else rate.per
    *_, [(due,)], _ = ends
    settled = await consumer.looked(queue, verdicts, claims, min(wanted, allowed) or wanted, due)
    soonest = min((moment for moment in (settled.next_in, due) if moment is not None), default=None)
    return Settled(verdicts, claims, soonest, blocked)


def _counted(
    store: Store, queue: QueueRow, settings: ConsumerSettings, options: WorkerOptions, claims: Sequence[PgClaim]
) -> list[Call]:
    """Returns the statements that count the claims in the windows of the queue and of their keys."""
    count = store.statements.get("rate_count")
    rate = settings.rate
    calls: list[Call] = []
    if rate is not None and claims:
        values = {"keys": text_list([QUEUE_KEY]), "counts": plain_list([len(claims)]), "period": number(rate.per)}
        calls.append((count, {"queue": text(queue.name), **values}))
    if options.keyRate is not None:
        column, prefix = ("group_id", "group:") if options.keyRateBy == "group" else ("singleton_key", "key:")
        keys = Counter(prefix + key for claim in claims if (key := claim.job.raw[column]) is not None)
        if keys:
            values = {"keys": text_list(list(keys)), "counts": plain_list(list(keys.values()))}
            calls.append((count, {"queue": text(queue.name), **values, "period": number(options.keyRate.per)}))
    return calls


def _next(queue: QueueRow, options: WorkerOptions) -> dict[str, bytes | None]:
    most = options.keyRate.jobs if options.keyRate is not None else None
    return {"queue": text(queue.name), "most": number(most)}
