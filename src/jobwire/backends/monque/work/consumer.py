"""Claims jobs of one queue for one worker, settles their outcomes, extends their leases and does an instance's
duties."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pymongo import errors as driver

from jobwire.backends.monque.codec import PRIVATE, fault_of, job_of, private, stalls_of
from jobwire.backends.monque.connection.clock import moment, ms_of
from jobwire.backends.monque.connection.errors import transient
from jobwire.backends.monque.connection.side_data import SideData
from jobwire.backends.monque.connection.store import ATTEMPT, Document, Store
from jobwire.backends.monque.upkeep import recover
from jobwire.backends.monque.upkeep.malformed import Malformed
from jobwire.backends.monque.upkeep.retention import Retention
from jobwire.backends.monque.work.claim import Claimer
from jobwire.backends.monque.work.identity import Identity
from jobwire.backends.monque.work.settle import Plan, Planner, Request, several
from jobwire.backends.monque.work.wakeup import Waiter, Wakeup
from jobwire.backends.monque.worker_options import WorkerOptions
from jobwire.boundary import Claim, Completed, ConsumerSettings, Duty, DutyReport, Outcome, Settled, Verdict
from jobwire.deadline import deadline
from jobwire.errors import StoreUnavailable

STALLED_TOO_OFTEN = "job stalled more than allowable limit"
_BEATS_PER_LEASE = 4
_TRIES = 3
_RETRY_PAUSE = 0.05
_PAUSE_POLL = 0.5
_SWEEP_EVERY = 300.0
_RESTART = 0.2
"""Seconds. No server restarts within this time."""


class _Written(NamedTuple):
    """The number of documents that matched. `repeated` if the updates were sent more than once."""

    matched: int
    repeated: bool


class _Late(NamedTuple):
    """The verdict of an outcome that was settled by itself. `reorders` if its job is pending again."""

    verdict: Verdict
    reorders: bool


class MonqueConsumer:
    """Implements Consumer."""

    def __init__(
        self, store: Store, side: SideData, wakeup: Wakeup, identity: Identity, settings: ConsumerSettings
    ) -> None:
        self._store = store
        self._side = side
        self._wakeup = wakeup
        self._settings = settings
        self._options = WorkerOptions.of(store.address, settings.native)
        self._instance = self._options.instance
        self._worker = (self._instance.id if self._instance else None) or settings.worker_id
        self._lease_ms = max(1, round(settings.lease * 1000))
        self._beat_ms = max(1, self._lease_ms // _BEATS_PER_LEASE)
        self._claimer = Claimer(store, settings.queue, self._worker, self._beat_ms, self._lease_ms)
        self._planner = Planner(settings, self._options, self._worker, store.address.tz)
        self._retention = Retention(store, side, settings)
        self._waiter = Waiter(store.clock)
        self._waits = False
        """True once the worker has waited."""
        self._id_is_ours = False
        self._identity = identity
        self._looking = self._instance.looking if self._instance else identity.looking
        self._held = 0
        self._last_moment = 0
        self._malformed = Malformed(store, settings.queue)

    # --- claiming and settling --------------------------------------------------------------------------------------

    async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        """Settles the outcomes and claims jobs. While no other worker claims from the queue this is one command: it
        settles the outcomes and claims jobs that were read ahead. See `claim` for the other case."""
        await self._store.look_at_clock()
        await self._refuse_twin()
        late = [place for place, outcome in enumerate(outcomes) if self._is_late(outcome.claim)]
        alone = {place: await self._settle_late(outcomes[place]) for place in late}
        plan = self._planner.plan(
            [outcome for place, outcome in enumerate(outcomes) if place not in alone], self._next_moment()
        )
        plan.reorders |= any(one.reorders for one in alone.values())
        recorded = time.monotonic()
        await self._side.record(plan.runs)
        # A waiting worker that would have been woken, and was not, need not read the queue: no job is due.
        idle = claim <= 0 or (self._waiter.quiet and not plan.reorders)
        wanted = 0 if idle or await self._side.paused_lately(self._settings.queue) else claim
        free = self._instance.reserve(wanted) if self._instance else wanted
        woken, self._waiter.woken = self._waiter.woken, False
        if wanted and not free:
            await self.pass_on()  # a worker of another instance may have room
        got: list[Document] = []
        try:
            if plan.reorders or not free or self._claimer.crowded:
                verdicts = await self._settle_alone(plan)
                got, more, token = await self._claim_alone(free, woken=woken)
            else:
                token = secrets.token_hex(8)
                verdicts, got, more = await self._settle_and_claim(plan, free, token)
        finally:
            self._let_go(free - len(got))
        if plan.runs and time.monotonic() - recorded > _RESTART:
            await self._record_again(plan, verdicts)
        self._held += len(got)
        self._conclude(len(outcomes))
        next_in = 0.0 if more else None
        # Only if nothing was claimed, since this read would delay the start of claimed jobs. A worker that waits at the
        # change stream reads the same at its next wait.
        if free and not got and not more and not (self._waits and self._wakeup.listening):
            # The verdicts must be returned. If the store is unavailable, `wait` reads the same and raises.
            with contextlib.suppress(StoreUnavailable):
                due = await self._claimer.next_due()
                next_in = None if due is None else self._store.clock.soon(due)
        if alone:
            others = iter(verdicts)
            verdicts = [alone[place].verdict if place in alone else next(others) for place in range(len(outcomes))]
        return Settled(verdicts, [self._claimed(one, token) for one in got], next_in)

    def _is_late(self, claim: Claim) -> bool:
        """Returns True if the first lease of the claim is over, so that the job may have been recovered meanwhile."""
        until = ms_of(private(claim.job.raw).get("until"))
        return until is None or until <= self._store.clock.now_ms()

    async def _settle_late(self, outcome: Outcome) -> _Late:
        """Settles an outcome by a command of its own.

        If the job was recovered, another worker may have settled it in the very millisecond of this outcome, and its
        `updatedAt` would be taken for ours. The number of documents that this one command matched can't be.
        """
        plan, begun = self._planner.plan([outcome], self._next_moment()), time.monotonic()
        [planned] = plan.planned
        await self._side.record(plan.runs)
        written = await self._write(plan.requests)
        if written.matched:
            verdict = planned.verdict
        elif written.repeated or planned.recurring is not None:
            [verdict] = await self._read_verdicts(plan)
        else:
            verdict = Verdict.LOST
            await self._side.remove_runs(plan.runs)
        if plan.runs and time.monotonic() - begun > _RESTART:
            await self._record_again(plan, [verdict])
        return _Late(verdict, plan.reorders)

    async def _record_again(self, plan: Plan, verdicts: list[Verdict]) -> None:
        """Records the runs once more after a call that took as long as a restart of the server. Runs are recorded
        without waiting for the majority, so the server may have lost them and then, after its restart, taken the
        outcomes."""
        kept = zip(plan.planned, verdicts, strict=True)
        with contextlib.suppress(StoreUnavailable):  # the verdicts must be returned
            await self._side.record([one.run for one, verdict in kept if one.run and verdict is not Verdict.LOST])

    async def _settle_and_claim(
        self, plan: Plan, wanted: int, token: str
    ) -> tuple[list[Verdict], list[Document], bool]:
        candidates = await self._claimer.candidates(wanted, plan.at_ms)
        try:
            requests = [*plan.requests, *self._claimer.requests(candidates, token, plan.at_ms)]
            if (await self._write(requests)).matched == len(plan.planned) + len(candidates):
                return [one.verdict for one in plan.planned], candidates, False
            verdicts = await self._read_verdicts(plan)
            got = await self._claimer.won([one["_id"] for one in candidates], token)
        finally:
            self._claimer.done_with(candidates)
        if len(got) < len(candidates):
            self._claimer.note_rivals()
        return verdicts, got, len(got) < len(candidates)

    async def _settle_alone(self, plan: Plan) -> list[Verdict]:
        if plan.reorders:
            self._claimer.drop_shortlist()
        if (await self._write(plan.requests)).matched == len(plan.planned):
            return [one.verdict for one in plan.planned]
        return await self._read_verdicts(plan)

    async def _claim_alone(self, wanted: int, *, woken: bool) -> tuple[list[Document], bool, str]:
        token = secrets.token_hex(8)
        if not wanted:
            return [], False, token
        if self._claimer.crowded:
            now = self._store.clock.now_ms()
            got, more = await self._claimer.take_among_rivals(wanted, token, now, woken=woken)
        else:
            _, got, more = await self._settle_and_claim(Plan(self._next_moment()), wanted, token)
        return got, more, token

    async def _write(self, requests: list[Request]) -> _Written:
        """Sends the updates. Repeats them after a lost answer: updates that were made do not match again, and are then
        found by their `updatedAt` or their token."""
        if not requests:
            return _Written(0, repeated=False)
        async with self._store.reaching():
            for left in reversed(range(_TRIES)):
                try:
                    async with deadline(self._store.deadline(ATTEMPT)):
                        result = await self._store.jobs.bulk_write(requests, ordered=False)
                        return _Written(result.matched_count, repeated=left < _TRIES - 1)
                except (driver.PyMongoError, TimeoutError) as error:
                    if not left or (isinstance(error, driver.PyMongoError) and not transient(error)):
                        raise
                    await asyncio.sleep(_RETRY_PAUSE)
        raise AssertionError("unreachable")

    async def _read_verdicts(self, plan: Plan) -> list[Verdict]:
        """Reads the jobs to find out which outcomes were settled, because not all updates matched."""
        at = moment(plan.at_ms)
        keys = [one.key for one in plan.planned]
        if not keys:
            return []
        async with self._store.reaching():
            found = await self._store.jobs.find(
                {"_id": {"$in": keys}}, {"status": 1, "updatedAt": 1, "repeatInterval": 1, f"{PRIVATE}.claim": 1}
            ).to_list()
        documents = {one["_id"]: one for one in found}
        verdicts: list[Verdict] = []
        seen: set[Any] = set()
        for one in plan.planned:
            # Of two outcomes of one job in one call, only the first can have been settled.
            landed = one.key not in seen and one.landed(documents.get(one.key), at)
            seen.add(one.key)
            verdict = one.verdict if landed else Verdict.LOST
            if not landed and one.recurring is not None and one.key in documents:
                verdict = await self._by_its_new_schedule(one.recurring, documents[one.key])
            verdicts.append(verdict)
        pairs = zip(plan.planned, verdicts, strict=True)
        await self._side.remove_runs([one.run for one, verdict in pairs if verdict is Verdict.LOST and one.run])
        return verdicts

    async def _by_its_new_schedule(self, outcome: Completed, document: Document) -> Verdict:
        """Settles a job whose cron expression was changed while it ran, if that is why its update did not match."""
        raw = dict(outcome.claim.job.raw)
        changed = document.get("repeatInterval") != raw.get("repeatInterval")
        held = document.get("status") == "processing" and private(document).get("claim") == outcome.claim.token
        if not (changed and held):
            return Verdict.LOST
        raw["repeatInterval"] = document.get("repeatInterval")
        outcome.claim.job = replace(outcome.claim.job, raw=raw)
        plan = self._planner.plan([outcome], self._next_moment())
        await self._side.record(plan.runs)
        [verdict] = await self._settle_alone(plan)
        return verdict

    def _next_moment(self) -> int:
        """Returns the present time in ms, but never the same twice: the updates of one call are recognised by it."""
        self._last_moment = max(self._store.clock.now_ms(), self._last_moment + 1)
        return self._last_moment

    def _claimed(self, document: Document, token: str) -> Claim:
        job = job_of(document, None, now=self._store.clock.now_ms(), attempts=self._options.max_retries)
        doomed = fault_of(document)
        if doomed is None and stalls_of(document) > self._settings.max_stalled:
            doomed = STALLED_TOO_OFTEN
        return Claim(job, token, doomed=doomed)

    def _conclude(self, outcomes: int) -> None:
        self._held -= outcomes
        self._let_go(outcomes)

    def _let_go(self, slots: int) -> None:
        if self._instance is not None:
            self._instance.free(slots)

    async def _refuse_twin(self) -> None:
        """Raises StoreRefused, before the first claim, if another live instance has the same id: each would settle the
        other's jobs."""
        if self._id_is_ours:
            return
        async with self._looking:  # else a second lane would take the claims of the first for another instance's
            known = self._identity.is_known(self._settings.queue) if self._instance is None else self._instance.known
            if not (self._id_is_ours or known):
                await recover.refuse_twin(self._store, self._worker, self._beat_ms)
            self._id_is_ours = True
            self._identity.use(self._settings.queue)
            if self._instance is not None:
                self._instance.known = True

    # --- waiting ----------------------------------------------------------------------------------------------------

    async def wait(self, timeout: float) -> None:
        self._waits = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                if self._instance is not None:
                    await self._instance.has_room()
                if await self._store.sheltered(self._side.paused_lately(self._settings.queue)):
                    await self._resumed()
                    return
                self._waiter = Waiter(self._store.clock)
                await self._wakeup.wait(self._settings.queue, timeout, self._claimer.next_due, self._waiter)

    async def _resumed(self) -> None:
        while True:
            await asyncio.sleep(_PAUSE_POLL)
            if not await self._store.sheltered(self._side.paused(self._settings.queue)):
                return

    async def pass_on(self) -> None:
        self._wakeup.wake(self._settings.queue, 0)

    # --- leases -----------------------------------------------------------------------------------------------------

    async def extend(self, claims: Sequence[Claim]) -> Collection[Claim]:
        """Extends the leases and renews the heartbeats. Renews `lockedAt` too, which the peer does not do for its own
        jobs, so that its recovery at start-up never takes a live job of ours."""
        await self._store.look_at_clock()
        now = self._store.clock.now_ms()
        at = moment(now)
        beat: Document = {"lastHeartbeat": at, "lockedAt": at, "updatedAt": at}
        change: Document = {"$set": {**beat, f"{PRIVATE}.until": moment(now + self._lease_ms)}}
        by_token: dict[str, list[Any]] = defaultdict(list)
        for claim in claims:
            by_token[claim.token].append(claim.job.raw["_id"])
        ours = {"status": "processing", "claimedBy": self._worker}
        requests = [several(keys, {**ours, f"{PRIVATE}.claim": token}, change) for token, keys in by_token.items()]
        if (await self._write(requests)).matched == len(claims):
            return []
        keys = [claim.job.raw["_id"] for claim in claims]
        async with self._store.reaching():
            found = await self._store.jobs.find({"_id": {"$in": keys}, **ours}, {f"{PRIVATE}.claim": 1}).to_list()
        held = {one["_id"]: private(one).get("claim") for one in found}
        return [claim for claim in claims if held.get(claim.job.raw["_id"]) != claim.token]

    # --- duties -----------------------------------------------------------------------------------------------------

    def duties(self) -> Sequence[Duty]:
        duties = [
            self._duty("recover stale jobs", self._settings.recover_every, self._recover),
            self._duty("set malformed jobs aside", self._settings.recover_every, self._malformed.run),
            self._duty("delete side data of deleted jobs", _SWEEP_EVERY, self._retention.sweep),
        ]
        if self._retention.wanted:
            duties.append(self._duty("delete old finished jobs", self._options.retention_interval, self._retention.run))
        return duties

    def _duty(self, name: str, every: float, run: Callable[[], Coroutine[Any, Any, DutyReport]]) -> Duty:
        """Returns a duty that goes on to its end when its worker is closed, see `Store.sheltered`. It never overlaps
        itself: if a run that was given up still goes on, the next call waits for that one."""
        under_way: asyncio.Task[DutyReport] | None = None

        def begin_or_join() -> Awaitable[DutyReport]:
            nonlocal under_way
            if under_way is None or under_way.done():
                under_way = self._store.send(run())
            return asyncio.shield(under_way)

        return Duty(name, every, begin_or_join)

    async def _recover(self) -> DutyReport:
        recovered = await recover.recover(self._store, self._settings.queue, round(self._options.lock_timeout * 1000))
        if recovered:
            self._claimer.drop_shortlist()
            self._wakeup.wake(self._settings.queue, 0, len(recovered))
        return DutyReport(recovered)

    async def reset(self) -> None:
        """Drops the shortlist and the server's time, since another server may be primary now. The driver closes broken
        connections itself."""
        self._claimer.drop_shortlist()
        self._store.clock.doubt()

    async def close(self) -> None:
        if self._id_is_ours:
            self._identity.leave(self._settings.queue)
        self._let_go(self._held)
        self._held = 0
