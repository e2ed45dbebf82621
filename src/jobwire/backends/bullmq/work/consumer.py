"""One worker's hold on one BullMQ queue: claims, outcomes, leases, and taking back what dead workers left."""

from __future__ import annotations

import asyncio
import itertools
import logging
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from jobwire import codec as json_codec
from jobwire.backends.bullmq import codec
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.bullmq.work import advance_schedules
from jobwire.backends.bullmq.work.early_claims import TakenBack, Trial, trials
from jobwire.backends.bullmq.work.retry import decide, milliseconds
from jobwire.backends.bullmq.work.stored_options import DEFAULTS, KEEP_ALL, StoredOptions, kept
from jobwire.backends.bullmq.work.wakeup import Doorbell
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.scripts import Argument, Scripts
from jobwire.boundary import (
    Claim,
    Completed,
    ConsumerSettings,
    Duty,
    DutyReport,
    Failed,
    Outcome,
    Parked,
    Released,
    Settled,
    Snoozed,
    Throttled,
    Verdict,
)
from jobwire.errors import JobwireError, StoreUnavailable
from jobwire.model import State
from jobwire.native import BullMQWorker, of_kind

_log = logging.getLogger("jobwire.bullmq")

_EXTEND_BATCH = 500
_LONGEST_LIMIT = 30.0
_RENEW_PART = 4
_CLOSING = 2.0
# The check is shared by all workers of a queue through a key that lives for one period; coming back a little later
# finds it gone, and not about to go.
_AFTER_CHECK = 0.1
_PENDING_CHILDREN, _FAILED_CHILDREN = -4, -9
_REFUSED_BY_CHILDREN = {
    _PENDING_CHILDREN: "the job has children that have not finished",
    _FAILED_CHILDREN: "the job has children that failed",
}


@dataclass(slots=True, eq=False)
class BullClaim(Claim):
    """A claim with what its settling will need of the job's options."""

    options: StoredOptions = DEFAULTS
    native_id: bytes = b""
    """The id as it is stored; a peer may have written one that is no text."""


class BullConsumer:
    """Implements Consumer."""

    def __init__(self, store: RedisStore, scripts: Scripts, keys: Keys, settings: ConsumerSettings) -> None:
        native = of_kind(BullMQWorker, settings.native, "BullMQ")
        self._store = store
        self._scripts = scripts
        self._keys = keys
        self._settings = settings
        self._doorbell = Doorbell(store, keys, settings.name, self)
        self._ordered = ""
        self._brought: list[Trial] = []
        self._kept_free = 0
        """Slots that calls under way have left to the job of an order."""
        self._unadvanced: list[Claim] = []
        self._owner = uuid.uuid4()
        self._turns = itertools.count()
        self._lease_ms = round(settings.lease * 1000)
        self._max_starts = native.max_started_attempts
        self._keep_completed = kept(settings.keep_completed) if settings.keep_completed else KEEP_ALL
        self._keep_failed = kept(settings.keep_failed) if settings.keep_failed else KEEP_ALL
        rate: tuple[Argument, Argument] = ("", "")
        if settings.rate is not None:
            rate = (settings.rate.jobs, round(settings.rate.per * 1000))
        self._about: tuple[Argument, ...] = (settings.name or "", *rate, native.metrics or "")

    async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        if not claim:
            return await self._settle(outcomes, 0)
        brought = await self._take_brought(claim)
        if brought and not outcomes:
            return Settled((), [one.claim for one in brought], next_in=0.0)  # there may be more
        # The job that an order brings must find a slot: a call that fills all of them would have it handed back.
        kept_free = int(self._doorbell.ordered and not brought)
        self._kept_free += kept_free
        try:
            settled = await self._settle(outcomes, claim - len(brought) - kept_free)
        except BaseException:
            self._brought[:0] = brought
            raise
        finally:
            self._kept_free -= kept_free
        brought += await self._take_brought(claim - len(brought) - len(settled.claims))
        return replace(settled, claims=[*(one.claim for one in brought), *settled.claims]) if brought else settled

    async def _settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        if not outcomes and not claim:
            return Settled()
        now = await self._store.clock.now_ms()
        token = f"{self._owner}:{next(self._turns)}"
        completed: list[Argument] = []
        others: list[Argument] = []
        completed_at: list[int] = []
        others_at: list[tuple[int, Verdict]] = []
        for place, outcome in enumerate(outcomes):
            if isinstance(outcome, Completed):
                held = outcome.claim
                keep = _options(held).keep_completed or self._keep_completed
                attempts, unique = held.job.attempts_made + 1, held.job.raw.get("deid", "")
                completed += (_native_id(held), held.token, outcome.result, *keep, attempts, unique)
                completed_at.append(place)
            else:
                others_at.append((place, self._encode(others, outcome)))
        head = (now, claim, token, self._lease_ms, *self._about, len(completed_at), len(others_at))
        reply = await self._scripts.run("settle", [self._keys.base], [*head, *completed, *others])
        codes, jobs, limited, due, odd = reply
        throttled = limited and any(isinstance(outcome, Throttled) for outcome in outcomes)
        self._tell_odd(odd)
        verdicts = [Verdict.COMPLETED] * len(outcomes)
        for place, verdict in others_at:
            verdicts[place] = verdict
        if any(codes):
            places = itertools.chain(completed_at, (place for place, _ in others_at))
            for place, code in zip(places, codes, strict=True):
                if code in _REFUSED_BY_CHILDREN:
                    verdicts[place] = await self._fail_for_children(outcomes[place].claim, code)
                elif code:
                    verdicts[place] = Verdict.LOST
        claims = self._read(jobs, token, now) if jobs else []
        if claim:
            self._doorbell.due_ms = due or None
        await self._advance_schedules(claims)
        return Settled(
            verdicts,
            claims,
            next_in=max(0.0, (due - self._store.clock.last_known_ms()) / 1000) if due else None,
            # A limit that has just been asked for binds this worker for all of its time: without a rate of its own it
            # would not find it in the store again.
            blocked_for=limited / 1000 if throttled else min(limited / 1000, _LONGEST_LIMIT),
        )

    def _tell_odd(self, odd: list[bytes]) -> None:
        if odd:
            _log.warning("queue %s: threw out entries that are no jobs: %s", self._keys.queue, odd)

    def _encode(self, args: list[Argument], outcome: Failed | Released | Snoozed | Completed) -> Verdict:
        """Append an outcome other than completion in the form of the script; what it comes to if it is accepted."""
        held = outcome.claim
        job_id = _native_id(held)
        if isinstance(outcome, Parked):
            args += ("W", job_id, held.token)
            return Verdict.PARKED
        if isinstance(outcome, Throttled):
            args += ("L", job_id, held.token, max(1, round(outcome.delay * 1000)))
            return Verdict.RELEASED
        if isinstance(outcome, TakenBack):
            args += ("U", job_id, held.token, *outcome.trace)
            return Verdict.RELEASED
        if isinstance(outcome, Released):
            args += ("P", job_id, held.token)
            return Verdict.RELEASED
        if isinstance(outcome, Snoozed):
            args += ("S", job_id, held.token, max(0, round(outcome.delay * 1000)))
            return Verdict.SNOOZED
        assert isinstance(outcome, Failed)  # noqa: S101 completions have their own place
        options = _options(held)
        decision = decide(outcome, options, self._settings)
        reason = decision.reason.encode(errors="replace")
        stacks = json_codec.dumps(_stacks(outcome, options))
        if decision.delay is None:
            keep = options.keep_failed or self._keep_failed
            args += ("F", job_id, held.token, reason, stacks, options.attempts, *keep)
            return Verdict.FAILED
        if (wait := milliseconds(decision.delay)) > 0:
            args += ("D", job_id, held.token, reason, stacks, wait)
        else:
            args += ("R", job_id, held.token, reason, stacks, "l" if options.lifo else "")
        return Verdict.RETRIED

    async def _fail_for_children(self, claim: Claim, code: int) -> Verdict:
        """A parent can't complete before its children; BullMQ counts that as a failed run."""
        failed = Failed(claim, _REFUSED_BY_CHILDREN[code], final=code == _FAILED_CHILDREN)
        return (await self._settle([failed], 0)).verdicts[0]

    def _read(self, jobs: list[Any], token: str, now: int) -> list[Claim]:
        queue, worker, stamp = self._keys.queue, self._settings.name, b"%d" % now
        max_starts = self._max_starts
        claims: list[Claim] = []
        pairs = iter(jobs)
        for job_id, fields in zip(pairs, pairs, strict=True):
            raw = codec.raw_fields(fields)
            doomed = raw.get("defa")
            starts = codec.integer(raw.get("ats")) + 1
            # The reply shows the hash as it was before this pick-up.
            raw["processedOn"] = stamp
            raw["ats"] = b"%d" % starts
            if worker:
                raw["pb"] = worker.encode()
            job, problem = codec.read_job(queue, job_id.decode(errors="replace"), raw, State.ACTIVE, "active")
            if doomed is not None:
                problem = doomed.decode(errors="replace")
            elif max_starts is not None and starts > max_starts:
                problem = "job started more than allowable limit"
            claims.append(BullClaim(job, token, doomed=problem, options=codec.options_of(raw), native_id=job_id))
        return claims

    async def _advance_schedules(self, claims: Sequence[Claim]) -> None:
        """The worker that picks up a schedule's job makes the next one. The claims are ours whatever comes of that,
        and what the store could not do now is done with the next call: a schedule without a next job has stopped."""
        made = self._unadvanced + [claim for claim in claims if "rjk" in claim.job.raw]
        if not made:
            return
        self._unadvanced = []
        try:
            now = await self._store.clock.now_ms()
            problems = await advance_schedules.advance(self._scripts, self._keys, made, now)
        except StoreUnavailable:
            self._unadvanced += made
            return
        except JobwireError as error:
            problems = [f"the next jobs of its schedules were not made: {error}"]
        for problem in problems:
            _log.warning("queue %s: %s", self._keys.queue, problem)

    async def wait(self, timeout: float) -> None:
        if not self._brought:
            await self._doorbell.wait(timeout)

    async def pass_on(self) -> None:
        await self._doorbell.withdrawn()
        if not self._brought:
            await self._doorbell.ring()
        elif not self._kept_free:
            await self.refuse()
        await self._doorbell.leave_due()

    def place(self) -> tuple[Argument, ...] | None:
        """An order for one job. Where starts are counted by a rate limit there are none: a start can't be taken back
        from a window that has ended."""
        if self._settings.rate is not None:
            return None
        self._ordered = f"{self._owner}:{next(self._turns)}"
        args = ("T", 1, self._ordered, self._lease_ms, *self._about, 0, 0)
        return self._scripts.command("settle", [self._keys.base], args)

    def fill(self, reply: Any) -> bool:
        _, jobs, _, due, odd, now, traces = reply
        self._tell_odd(odd)
        self._doorbell.due_ms = due or None
        self._brought += trials(self._read(jobs, self._ordered, int(now)), jobs, traces, int(now))
        return bool(jobs)

    async def refuse(self) -> None:
        brought, self._brought = self._brought, []
        try:
            await self._settle([TakenBack(one.claim, one.trace) for one in brought], 0)
        except BaseException:
            # They may be back in the queue, so they are as old as can be: taken only if a renewal finds them ours.
            self._brought[:0] = [replace(one, claimed_ms=0) for one in brought]
            raise

    async def _take_brought(self, room: int) -> list[Trial]:
        """Up to `room` jobs that orders have brought. One that was claimed a while ago (its answer lay unread while a
        handler kept the event loop) is renewed first, and let go if it is no longer ours."""
        if not self._brought or room <= 0:
            return []
        taken, self._brought = self._brought[:room], self._brought[room:]
        latest = self._store.clock.last_known_ms() - self._lease_ms / _RENEW_PART
        try:
            lost = await self.extend([one.claim for one in taken if one.claimed_ms < latest])
        except JobwireError:
            self._brought[:0] = taken
            return []
        except BaseException:
            self._brought[:0] = taken
            raise
        taken = [one for one in taken if one.claim not in lost]
        await self._advance_schedules([one.claim for one in taken])
        return taken

    async def extend(self, claims: Sequence[Claim]) -> Collection[Claim]:
        lost: list[Claim] = []
        for start in range(0, len(claims), _EXTEND_BATCH):
            batch = claims[start : start + _EXTEND_BATCH]
            args: list[Argument] = [self._lease_ms]
            for claim in batch:
                args += (_native_id(claim), claim.token)
            places: list[int] = await self._scripts.run("extend", [self._keys.base], args)
            lost += [batch[place - 1] for place in places]
        return lost

    def duties(self) -> Sequence[Duty]:
        return [Duty("recover", self._settings.recover_every + _AFTER_CHECK, self._recover)]

    async def _recover(self) -> DutyReport:
        await self._advance_schedules([])
        settings = self._settings
        args = [await self._store.clock.now_ms(), round(settings.recover_every * 1000), settings.max_stalled]
        ids: list[bytes] = await self._scripts.run("recover", [self._keys.base], args)
        return DutyReport([job_id.decode(errors="replace") for job_id in ids])

    async def reset(self) -> None:
        await self._doorbell.reset()
        await self._store.reset()

    async def close(self) -> None:
        await self._doorbell.close()
        if self._brought:
            with suppress(JobwireError, TimeoutError):  # then they come back by recovery
                async with asyncio.timeout(_CLOSING):
                    await self.refuse()


def _options(claim: Claim) -> StoredOptions:
    return claim.options if isinstance(claim, BullClaim) else DEFAULTS


def _native_id(claim: Claim) -> Argument:
    return claim.native_id if isinstance(claim, BullClaim) else claim.job.id


def _stacks(failed: Failed, options: StoredOptions) -> list[str]:
    """The stacks of all failed runs, oldest first, cut to the newest that the job wants to keep. BullMQ has one for
    every run, also for those that fail without their handler: of these we have the reason."""
    stacks = [*failed.claim.job.stacktrace, failed.stack or failed.error]
    if options.stack_limit is None:
        return stacks
    return stacks[-options.stack_limit :] if options.stack_limit else []
