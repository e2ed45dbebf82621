"""The consumer: claims jobs of one BullMQ queue for one worker, settles their outcomes and extends their leases."""

from __future__ import annotations

import asyncio
import itertools
import logging
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from jobwire.backends.bullmq import codec
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.bullmq.upkeep.recover import AFTER_CHECK, recover
from jobwire.backends.bullmq.work import advance_schedules
from jobwire.backends.bullmq.work.early_claims import EarlyClaim, UndoneClaim, early_claims
from jobwire.backends.bullmq.work.outcomes import BullClaim, encode, encode_completed, native_id
from jobwire.backends.bullmq.work.stored_options import KEEP_ALL, kept
from jobwire.backends.bullmq.work.wakeup import Wakeup
from jobwire.backends.extend_batches import extend_in_batches
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
    Settled,
    Throttled,
    Verdict,
)
from jobwire.counted import counted
from jobwire.errors import JobwireError, StoreUnavailable
from jobwire.model import State
from jobwire.native import BullMQWorker, of_kind

_log = logging.getLogger("jobwire.bullmq")

_LONGEST_LIMIT = 30.0
_RENEW_PART = 4
_CLOSING = 2.0
_PENDING_CHILDREN, _FAILED_CHILDREN = -4, -9
_REFUSED_BY_CHILDREN = {
    _PENDING_CHILDREN: "the job has children that have not finished",
    _FAILED_CHILDREN: "the job has children that failed",
}


class BullConsumer:
    """Implements Consumer."""

    def __init__(self, store: RedisStore, scripts: Scripts, keys: Keys, settings: ConsumerSettings) -> None:
        native = of_kind(BullMQWorker, settings.native, "BullMQ")
        self._store = store
        self._scripts = scripts
        self._keys = keys
        self._settings = settings
        self._wakeup = Wakeup(store, keys, settings.name, self)
        self._early_token = ""
        self._early: list[EarlyClaim] = []
        self._kept_free = 0
        """Slots that calls in progress leave free for the job of an early claim."""
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
        early = await self._take_early(claim)
        if early and not outcomes:
            return Settled((), [one.claim for one in early], next_in=0.0)  # there may be more
        # The job of an early claim needs a slot: if this call filled all of them, that claim would have to be undone.
        kept_free = int(self._wakeup.claiming and not early)
        self._kept_free += kept_free
        try:
            settled = await self._settle(outcomes, claim - len(early) - kept_free)
        except BaseException:
            self._early[:0] = early
            raise
        finally:
            self._kept_free -= kept_free
        early += await self._take_early(claim - len(early) - len(settled.claims))
        return replace(settled, claims=[*(one.claim for one in early), *settled.claims]) if early else settled

    async def _settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        if not outcomes and not claim:
            return Settled()
        now = await self._store.clock.now_ms()
        token = f"{self._owner}:{next(self._turns)}"
        completed_at, completed = encode_completed(outcomes, self._keep_completed)
        others: list[Argument] = []
        others_at: list[tuple[int, Verdict]] = []
        if len(completed_at) < len(outcomes):
            for index, outcome in enumerate(outcomes):
                if not isinstance(outcome, Completed):
                    others_at.append((index, encode(others, outcome, self._settings, self._keep_failed)))
        head = (now, claim, token, self._lease_ms, *self._about, len(completed_at), len(others_at))
        reply = await self._scripts.run("settle", [self._keys.base], [*head, *completed, *others])
        codes, jobs, limited, due, discarded = reply
        throttled = limited and any(isinstance(outcome, Throttled) for outcome in outcomes)
        self._log_discarded(discarded)
        verdicts = [Verdict.COMPLETED] * len(outcomes)
        for index, verdict in others_at:
            verdicts[index] = verdict
        if any(codes):
            indexes = itertools.chain(completed_at, (index for index, _ in others_at))
            for index, code in zip(indexes, codes, strict=True):
                if code in _REFUSED_BY_CHILDREN:
                    verdicts[index] = await self._fail_for_children(outcomes[index].claim, code)
                elif code:
                    verdicts[index] = Verdict.LOST
        claims = self._read(jobs, token, now) if jobs else []
        if claim:
            self._wakeup.due_ms = due or None
        await self._advance_schedules(claims)
        return Settled(
            verdicts,
            claims,
            next_in=max(0.0, (due - self._store.clock.last_known_ms()) / 1000) if due else None,
            # A throttle that this call has set holds for the worker in full: without a rate limit of its own, it would
            # not see the throttle in the store again.
            blocked_for=limited / 1000 if throttled else min(limited / 1000, _LONGEST_LIMIT),
        )

    def _log_discarded(self, ids: list[bytes]) -> None:
        if ids:
            entries = counted(len(ids), "entry", " that is not a job", " that are not jobs")
            _log.warning("queue %s: discarded %s: %s", self._keys.queue, entries, ids)

    async def _fail_for_children(self, claim: Claim, code: int) -> Verdict:
        """Fails a run that can't complete because of the job's children, as BullMQ does."""
        failed = Failed(claim, _REFUSED_BY_CHILDREN[code], final=code == _FAILED_CHILDREN)
        return (await self._settle([failed], 0)).verdicts[0]

    def _read(self, jobs: list[Any], token: str, now: int) -> list[Claim]:
        queue, stamp = self._keys.queue, b"%d" % now
        worker = self._settings.name.encode() if self._settings.name else None
        max_starts = self._max_starts
        claims: list[Claim] = []
        pairs = iter(jobs)
        for job_id, fields in zip(pairs, pairs, strict=True):
            raw = codec.raw_fields(fields)
            doomed = raw.get("defa")
            starts = codec.integer(raw.get("ats")) + 1
            # The reply has the hash as it was before this claim.
            raw["processedOn"] = stamp
            raw["ats"] = b"%d" % starts
            if worker is not None:
                raw["pb"] = worker
            job, problem = codec.read_job(queue, job_id.decode(errors="replace"), raw, State.ACTIVE, "active")
            if doomed is not None:
                problem = doomed.decode(errors="replace")
            elif max_starts is not None and starts > max_starts:
                problem = "job started more than allowable limit"
            claims.append(BullClaim(job, token, doomed=problem, options=codec.options_of(raw), native_id=job_id))
        return claims

    async def _advance_schedules(self, claims: Sequence[Claim]) -> None:
        """Makes the next jobs of the schedules that the claimed jobs belong to. An error does not affect the claims. If
        the store is unavailable, the next call tries again: a schedule without a next job has stopped."""
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
        if not self._early:
            await self._wakeup.wait(timeout)

    async def pass_on(self) -> None:
        await self._wakeup.withdrawn()
        if not self._early:
            await self._wakeup.wake_another()
        elif not self._kept_free:
            await self.undo_early_claims()
        await self._wakeup.leave_due()

    def early_claim_command(self) -> tuple[Argument, ...] | None:
        """Returns the command that claims one job early. Returns None if the worker has a rate limit: its window counts
        starts, and a start can't be removed from a window that has ended."""
        if self._settings.rate is not None:
            return None
        self._early_token = f"{self._owner}:{next(self._turns)}"
        args = ("T", 1, self._early_token, self._lease_ms, *self._about, 0, 0)
        return self._scripts.command("settle", [self._keys.base], args)

    def read_early_claim(self, reply: Any) -> bool:
        _, jobs, _, due, discarded, now, traces = reply
        self._store.clock.passed(int(now))  # else the job could end before it began
        self._log_discarded(discarded)
        self._wakeup.due_ms = due or None
        self._early += early_claims(self._read(jobs, self._early_token, int(now)), jobs, traces, int(now))
        return bool(jobs)

    async def undo_early_claims(self) -> None:
        early, self._early = self._early, []
        try:
            await self._settle([UndoneClaim(one.claim, one.trace) for one in early], 0)
        except BaseException:
            # They may be back in the queue. With `claimed_ms` 0 they are only taken if their leases can be extended.
            self._early[:0] = [replace(one, claimed_ms=0) for one in early]
            raise

    async def _take_early(self, room: int) -> list[EarlyClaim]:
        """Returns up to `room` jobs that were claimed early. If a claim is old (the reply was not read while a handler
        blocked the event loop), its lease is extended first, and the job is dropped if the claim is lost."""
        if not self._early or room <= 0:
            return []
        taken, self._early = self._early[:room], self._early[room:]
        latest = self._store.clock.last_known_ms() - self._lease_ms / _RENEW_PART
        try:
            lost = await self.extend([one.claim for one in taken if one.claimed_ms < latest])
        except JobwireError:
            self._early[:0] = taken
            return []
        except BaseException:
            self._early[:0] = taken
            raise
        taken = [one for one in taken if one.claim not in lost]
        await self._advance_schedules([one.claim for one in taken])
        return taken

    async def extend(self, claims: Sequence[Claim]) -> Collection[Claim]:
        return await extend_in_batches(claims, self._extend)

    async def _extend(self, claims: Sequence[Claim]) -> list[Claim]:
        args: list[Argument] = [self._lease_ms]
        for claim in claims:
            args += (native_id(claim), claim.token)
        positions: list[int] = await self._scripts.run("extend", [self._keys.base], args)
        return [claims[position - 1] for position in positions]

    def duties(self) -> Sequence[Duty]:
        return [Duty("recover", self._settings.recover_every + AFTER_CHECK, self._recover)]

    async def _recover(self) -> DutyReport:
        await self._advance_schedules([])
        return await recover(self._store.clock, self._scripts, self._keys, self._settings)

    async def reset(self) -> None:
        await self._wakeup.reset()
        await self._store.reset()

    async def close(self) -> None:
        await self._wakeup.close()
        if self._early:
            with suppress(JobwireError, TimeoutError):  # then their leases expire and they are recovered
                async with asyncio.timeout(_CLOSING):
                    await self.undo_early_claims()
