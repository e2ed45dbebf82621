"""One worker's hold on one job type: claims, outcomes, leases, and the duties of a BridgeMQ worker.

A worker knows the routes of its type and which of them admit it (`routing`), and asks for jobs of these. The claim's
answer brings the routes again when they have changed. What a job's own data says is checked once more before it runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from jobwire import codec as json_codec
from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.connection.clock import ServerClock
from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.bridgemq.native.routes import KnownRoutes
from jobwire.backends.bridgemq.native.routing import route_of
from jobwire.backends.bridgemq.produce.add import route_words
from jobwire.backends.bridgemq.upkeep.scheduler import TICK, Scheduler
from jobwire.backends.bridgemq.work import outcomes as written
from jobwire.backends.bridgemq.work.registry import BEAT_EVERY, Registration
from jobwire.backends.bridgemq.work.retry import decide
from jobwire.backends.bridgemq.work.wakeup import Doorbell
from jobwire.backends.bridgemq.worker_options import WorkerOptions
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
    Released,
    Settled,
    Snoozed,
    Verdict,
)
from jobwire.errors import JobwireError, MalformedPayload, StoreUnavailable
from jobwire.model import State

_log = logging.getLogger("jobwire.bridgemq")

_EXTEND_BATCH = 500
_LONGEST_LIMIT = 30.0
_LEAVE_WITHIN = 2.0


@dataclass(slots=True, eq=False)
class BridgeClaim(Claim):
    """A claim with the job's data, which its settling may have to write anew."""

    document: codec.Document = field(default_factory=dict[str, Any])
    server: str = ""
    started_ms: int = 0
    template: str = ""
    """SHA-1 of the data of a job that repeats by cron: its schedule may be replaced while it runs."""


class BridgeConsumer:
    """Implements Consumer."""

    def __init__(self, store: RedisStore, scripts: Scripts, keys: Keys, settings: ConsumerSettings) -> None:
        options = WorkerOptions.read(settings)
        self._store = store
        self._scripts = scripts
        self._keys = keys
        self._settings = settings
        self._type = settings.queue
        self._server = options.profile.server
        self._name = settings.name or self._server
        self._signature = json_codec.dumps(self._name)
        self._profile = options.profile
        self._routes = KnownRoutes(options, settings.queue)
        self._doorbell = Doorbell(store, scripts, keys, settings.queue)
        self._clock = ServerClock()
        self._registration = Registration(scripts, keys, options.profile, settings.queue, self._name)
        self._scheduler = Scheduler(scripts, keys, f"{self._server}:{uuid.uuid4().hex[:8]}")
        self._owner = uuid.uuid4().hex
        self._turns = itertools.count()
        self._lease_ms = round(settings.lease * 1000)
        rate: tuple[Argument, Argument] = ("", "")
        if settings.rate is not None:
            rate = (settings.rate.jobs, round(settings.rate.per * 1000))
        self._rate = rate

    # --- claiming and settling --------------------------------------------------------------------------------------

    async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        now = self._clock.now_ms()
        completed: list[Argument] = []
        others: list[Argument] = []
        completed_at: list[int] = []
        others_at: list[tuple[int, Verdict]] = []
        for place, outcome in enumerate(outcomes):
            held = _held(outcome.claim)
            if isinstance(outcome, Completed):
                completed += (
                    held.job.id,
                    held.token,
                    written.success(outcome, held.started_ms, now, self._signature),
                    held.template,
                )
                completed_at.append(place)
            else:
                others_at.append((place, self._encode(others, outcome, held, now)))
        settled = await self._call(claim, (len(completed_at), len(others_at)), [*completed, *others])
        verdicts = [Verdict.COMPLETED] * len(outcomes)
        for place, verdict in others_at:
            verdicts[place] = verdict
        for place, code in zip([*completed_at, *(place for place, _ in others_at)], settled.codes, strict=True):
            if code:
                verdicts[place] = Verdict.LOST
        claims = settled.claims
        if settled.routes_changed and len(claims) < claim:
            try:
                settled = await self._call(claim - len(claims), (0, 0), ())
            except StoreUnavailable:
                # The first call stands: its outcomes are settled, and its claims are ours.
                return Settled(verdicts, claims, next_in=0.0)
            claims = [*claims, *settled.claims]
        return Settled(verdicts, claims, next_in=settled.next_in, blocked_for=settled.blocked_for)

    async def _call(self, claim: int, numbers: tuple[int, int], outcomes: Sequence[Argument]) -> _Answer:
        settings, token = self._settings, f"{self._owner}:{next(self._turns)}"
        asked_for = self._routes.rows
        args: list[Argument] = [
            *(claim, self._type, self._server, token, self._lease_ms, settings.max_stalled, self._name),
            *(*self._rate, *self._routes.versions, len(asked_for) // 3, *numbers),
            *asked_for,
            *outcomes,
        ]
        reply = await self._scripts.run("settle", [self._keys.base], args)
        codes, jobs, held, due, more, update, limited, look, now = reply
        self._clock.hear(int(now))
        if update:
            self._routes.learn(*update)
        # Also if another call of ours has learned them while this one was under way.
        changed = self._routes.rows != asked_for
        claims = self._read(jobs, token, int(now)) if jobs else []
        if look:
            self._doorbell.seen = look
        waits = [held / 1000] if held else []
        if due >= 0:
            waits.append(due / 1000)
        if more or len(claims) < len(jobs) // 2:
            waits.append(0.0)
        claims = await self._set_apart(claims)
        return _Answer(codes, claims, min(waits, default=None), min(limited / 1000, _LONGEST_LIMIT), changed)

    def _read(self, jobs: list[bytes], token: str, now: int) -> list[BridgeClaim]:
        claims: list[BridgeClaim] = []
        pairs = iter(jobs)
        for raw_id, data in zip(pairs, pairs, strict=True):
            job_id = raw_id.decode(errors="replace")
            document: codec.Document = {}
            problem: str | None = None
            try:
                value = codec.load(data)
                document = cast(codec.Document, value) if isinstance(value, dict) else {}
                problem = None if document else "the job's data is not a JSON object"
            except MalformedPayload as error:
                problem = f"the job's data can't be read: {error}"
            job = codec.read_job(
                self._type, job_id, document, State.ACTIVE, native_state="active", started_ms=now, worker=self._name
            )
            template = hashlib.sha1(data, usedforsecurity=False).hexdigest() if _repeats(document) else ""
            claims.append(
                BridgeClaim(job, token, codec.timeout_of(document), problem, 0.0, document, self._server, now, template)
            )
        return claims

    async def _set_apart(self, claims: list[BridgeClaim]) -> list[BridgeClaim]:
        """Push back what its own data says is not ours to run: someone has changed it since the index was made."""
        ours = [claim for claim in claims if claim.doomed is not None or self._may_run(claim.document)]
        if len(ours) == len(claims):
            return claims
        others = [claim for claim in claims if claim not in ours]
        args: list[Argument] = []
        for claim in others:
            args += ("U", claim.job.id, claim.token)
        _log.warning("type %s: pushed back jobs that are meant for others: %s", self._type, [c.job.id for c in others])
        with suppress(StoreUnavailable):  # then their leases end, and they are recovered
            await self._call(0, (0, len(others)), args)
        return ours

    def _may_run(self, document: codec.Document) -> bool:
        if document.get("type") != self._type:
            return False
        return not document.get("target") or route_of(document).admits(self._profile)

    def _encode(self, args: list[Argument], outcome: Outcome, held: BridgeClaim, now: int) -> Verdict:
        """Append an outcome other than completion in the form of the script; what it comes to if it is accepted."""
        job_id, document = held.job.id, held.document
        if isinstance(outcome, Released):
            args += ("P", job_id, held.token, *route_words(route_of(document)))
            return Verdict.RELEASED
        if isinstance(outcome, Snoozed):
            args += ("S", job_id, held.token, max(0, round(outcome.delay * 1000)))
            return Verdict.SNOOZED
        assert isinstance(outcome, Failed)  # noqa: S101 completions have their own place
        decision = decide(outcome, document, self._settings.max_backoff)
        result = written.failure(outcome, held.started_ms, now, self._signature)
        template = held.template
        if decision.delay is None:
            data = written.after_failure(document, start_anew=bool(template))
            # What can't be read is kept as it is; the dead letter is where someone will look at it.
            args += ("F" if document else "B", job_id, held.token)
            args += (data, result, template) if document else (result,)
            return Verdict.FAILED
        changed = written.after_failure(document, reroute=decision.reroute)
        if decision.delay > 0:
            args += ("D", job_id, held.token, changed, result, template, decision.delay)
        else:
            front = "f" if held.job.priority >= codec.FRONT_FROM else ""
            route = route_of(codec.parse(changed) or {}) if decision.reroute else route_of(document)
            args += ("R", job_id, held.token, changed, result, template, *route_words(route), front)
        return Verdict.RETRIED

    # --- waiting, leases, duties ------------------------------------------------------------------------------------

    async def wait(self, timeout: float) -> None:
        await self._doorbell.wait(timeout)

    async def pass_on(self) -> None:
        """Nothing to do: whatever woke this worker has woken all others of its type."""

    async def extend(self, claims: Sequence[Claim]) -> Collection[Claim]:
        lost: list[Claim] = []
        for start in range(0, len(claims), _EXTEND_BATCH):
            batch = claims[start : start + _EXTEND_BATCH]
            args: list[Argument] = [self._type, self._lease_ms]
            for claim in batch:
                args += (claim.job.id, _held(claim).server, claim.token)
            places: list[int] = await self._scripts.run("extend", [self._keys.base], args)
            lost += [batch[place - 1] for place in places]
        return lost

    def duties(self) -> Sequence[Duty]:
        return [
            Duty("send the heartbeat", BEAT_EVERY, self._beat),
            Duty("recover", self._settings.recover_every, self._recover),
            Duty("schedule", TICK, self._scheduler.tick),
        ]

    async def _beat(self) -> DutyReport:
        await self._registration.beat()
        return DutyReport()

    async def _recover(self) -> DutyReport:
        # A little less than the period, so that a worker's own next look is never too early.
        period = max(1, round(self._settings.recover_every * 900))
        args: list[Argument] = [self._type, period]
        ids: list[bytes] = await self._scripts.run("recover", [self._keys.base], args)
        return DutyReport([job_id.decode(errors="replace") for job_id in ids])

    async def reset(self) -> None:
        await self._doorbell.reset()
        await self._store.reset()

    async def close(self) -> None:
        await self._doorbell.close()
        # A store that can't be reached forgets this worker by itself when the heartbeat ends.
        with suppress(JobwireError, TimeoutError):
            async with asyncio.timeout(_LEAVE_WITHIN):
                await self._scheduler.step_down()
                await self._registration.leave()


@dataclass(frozen=True, slots=True)
class _Answer:
    codes: Sequence[int]
    claims: Sequence[Claim]
    next_in: float | None
    blocked_for: float
    routes_changed: bool


def _repeats(document: codec.Document) -> bool:
    schedule = document.get("schedule")
    return bool(schedule) and bool(codec.mapping(schedule).get("cron"))


def _held(claim: Claim) -> BridgeClaim:
    assert isinstance(claim, BridgeClaim)  # noqa: S101 claims come back to the protocol that made them
    return claim
