"""Claiming, settling, extending and recovering jobs. A claim is valid while its token is the job's and its lease
runs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from jobwire.backends.memory.produce import schedules
from jobwire.backends.memory.store import families
from jobwire.backends.memory.store.queue_state import QueueState
from jobwire.backends.memory.store.record import Record
from jobwire.boundary import (
    Claim,
    Completed,
    ConsumerSettings,
    Failed,
    Outcome,
    Parked,
    Released,
    Settled,
    Snoozed,
    Throttled,
    Verdict,
)
from jobwire.model import State
from jobwire.options import Keep
from jobwire.rate import Rate
from jobwire.retry import NextAttempt

STALLED_TOO_OFTEN = "job stalled more than allowable limit"


def owned(queue: QueueState, claim: Claim, now: int) -> Record | None:
    record = queue.jobs.get(claim.job.id)
    if record is None or record.token != claim.token or not record.held(now):
        return None
    return record


def settle(
    queue: QueueState, outcome: Outcome, *, decided: NextAttempt | None, settings: ConsumerSettings, now: int
) -> Verdict:
    """Writes one outcome. `decided` is the next attempt of a failed run, decided before the store was locked."""
    record = owned(queue, outcome.claim, now)
    if record is None:
        return Verdict.LOST
    match outcome:
        case Completed() if families.failed(record) or families.pending(record):
            verdict = _refuse(queue, record, settings=settings, now=now)
        case Completed():
            record.attempts_made += 1
            record.result = outcome.result
            queue.log_event("completed", now, record, returnvalue=outcome.result, prev="active")
            _finish(queue, record, State.COMPLETED, record.keep_completed or settings.keep_completed, now)
            verdict = Verdict.COMPLETED
        case Failed():
            verdict = _fail(
                queue, record, outcome, decided or NextAttempt(None, outcome.error), settings=settings, now=now
            )
        case Parked() if families.failed(record):
            verdict = _refuse(queue, record, settings=settings, now=now)
        case Parked():
            families.park(queue, record, now)
            verdict = Verdict.PARKED
        case Released():
            if isinstance(outcome, Throttled):
                queue.throttled_until = now + round(outcome.delay * 1000)
            _put_back(queue, record, now, now, front=True)
            verdict = Verdict.RELEASED
        case Snoozed():
            _put_back(queue, record, now + round(outcome.delay * 1000), now, front=False)
            verdict = Verdict.SNOOZED
    if not (queue.ready or queue.active or queue.delayed):
        queue.log_event("drained", now)
    return verdict


def _fail(
    queue: QueueState, record: Record, outcome: Failed, decided: NextAttempt, *, settings: ConsumerSettings, now: int
) -> Verdict:
    record.attempts_made += 1
    record.error = decided.reason
    record.stack.append(outcome.stack)
    if decided.delay is not None:
        _put_back(queue, record, now + round(decided.delay * 1000), now, front=record.lifo)
        return Verdict.RETRIED
    record.doomed = None
    queue.log_event("failed", now, record, failedReason=decided.reason, prev="active")
    if record.attempts_made >= record.attempts:
        queue.log_event("retries-exhausted", now, record, attemptsMade=str(record.attempts_made))
    _finish(queue, record, State.FAILED, record.keep_failed or settings.keep_failed, now)
    return Verdict.FAILED


def _finish(queue: QueueState, record: Record, state: State, keep: Keep | None, now: int) -> None:
    queue.finish(record, state, now, keep)
    families.update_parent(queue, record, now)


def _refuse(queue: QueueState, record: Record, *, settings: ConsumerSettings, now: int) -> Verdict:
    """Fails a run whose job must not complete: a child is pending, or a child's failure fails it."""
    doomed = families.failed(record)
    reason = "the job has children that failed" if doomed else "the job has children that have not finished"
    ended = doomed or record.attempts_made + 1 >= record.attempts
    claim = Claim(record.snapshot(queue.name), record.token or "")
    decided = NextAttempt(None if ended else 0.0, reason)
    return _fail(queue, record, Failed(claim, reason), decided, settings=settings, now=now)


def _put_back(queue: QueueState, record: Record, due: int, now: int, *, front: bool) -> None:
    queue.take_out(record)
    record.due = due
    queue.put(record, now, prev=State.ACTIVE, front=front)


def claim(queue: QueueState, wanted: int, settings: ConsumerSettings, now: int) -> Settled:
    """Claims up to `wanted` jobs for the worker."""
    queue.make_due_ready(now)
    if wanted <= 0 or queue.closed:
        return Settled()
    rate = queue.rate or settings.rate
    blocked = _rate_limit(queue, rate, now)
    if blocked:
        return Settled(blocked_for=blocked)
    if rate is not None:
        wanted = min(wanted, rate.jobs - queue.window.started)
    if queue.concurrency is not None:
        wanted = min(wanted, queue.concurrency - len(queue.active))
    claims: list[Claim] = []
    while len(claims) < wanted and (first := queue.ready.first()) is not None:
        claims.append(_start(queue, queue.jobs[first[1]], settings, now))
    if rate is not None:
        queue.window.started += len(claims)
    due = queue.next_due()
    next_in = (due - now) / 1000 if due is not None and len(claims) < wanted else None
    return Settled(claims=claims, next_in=next_in, blocked_for=_rate_limit(queue, rate, now))


def claim_job(queue: QueueState, job_id: str, settings: ConsumerSettings, now: int) -> Claim | None:
    """Claims one job, also if it is not due. Returns None if it does not wait."""
    record = queue.jobs.get(job_id)
    if record is None or record.state not in (State.WAITING, State.DELAYED):
        return None
    return _start(queue, record, settings, now)


def _rate_limit(queue: QueueState, rate: Rate | None, now: int) -> float:
    """Returns the seconds until another job may start. A new window opens with the first job after the last window's
    end."""
    if rate is None:
        return 0.0
    if queue.throttled_until > now:
        return (queue.throttled_until - now) / 1000
    if queue.window.until <= now:
        queue.window.started, queue.window.until = 0, now + round(rate.per * 1000)
    return (queue.window.until - now) / 1000 if queue.window.started >= rate.jobs else 0.0


def _start(queue: QueueState, record: Record, settings: ConsumerSettings, now: int) -> Claim:
    queue.take_out(record)
    record.state = State.ACTIVE
    record.started = now
    record.starts += 1
    record.worker = settings.name or settings.worker_id
    record.token = uuid.uuid4().hex
    record.lease_until = now + round(settings.lease * 1000)
    queue.active[record.id] = next(queue.numbers)
    queue.log_event("active", now, record, prev="waiting")
    if record.schedule_key is not None:
        schedules.advance(queue, record, now)
    return Claim(record.snapshot(queue.name), record.token, record.timeout, record.doomed)


def extend(queue: QueueState, claims: Sequence[Claim], settings: ConsumerSettings, now: int) -> list[Claim]:
    """Renews the leases. Returns the claims that are lost."""
    lost: list[Claim] = []
    for one in claims:
        record = owned(queue, one, now)
        if record is None:
            lost.append(one)
        else:
            record.lease_until = now + round(settings.lease * 1000)
    return lost


def recover(queue: QueueState, settings: ConsumerSettings, now: int) -> list[str]:
    """Makes stalled jobs ready again. A job that stalled too often fails at its next claim without being run."""
    stalled = [queue.jobs[job_id] for job_id in queue.active if not queue.jobs[job_id].held(now)]
    for record in reversed(stalled):
        record.stalls += 1
        if record.stalls > settings.max_stalled:
            record.doomed = STALLED_TOO_OFTEN
        _put_back(queue, record, now, now, front=True)
        queue.log_event("stalled", now, record)
    return [record.id for record in stalled]
