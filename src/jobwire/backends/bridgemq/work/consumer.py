"""The consumer: claims jobs of one type for one worker, settles their outcomes, extends leases and has the duties of a
BridgeMQ worker.

A worker has a copy of the routes of its type and claims jobs of those that admit it (`native/routing.py`). The reply to
a claim contains the routes if they have changed. The target in a job's own data is checked once more before it runs.
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
from jobwire.backends.bridgemq.produce.add import route_arguments
from jobwire.backends.bridgemq.upkeep.scheduler import TICK, Scheduler
from jobwire.backends.bridgemq.work import outcomes as written
from jobwire.backends.bridgemq.work.registry import BEAT_EVERY, Registration
from jobwire.backends.bridgemq.work.retry import decide
from jobwire.backends.bridgemq.work.wakeup import Wakeup
from jobwire.backends.bridgemq.worker_options import WorkerOptions
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
    Released,
    Settled,
    Snoozed,
    Verdict,
)
from jobwire.counted import counted
from jobwire.errors import JobwireError, MalformedPayload, StoreUnavailable
from jobwire.model import State

_log = logging.getLogger("jobwire.bridgemq")

_LONGEST_LIMIT = 30.0
_LEAVE_WITHIN = 2.0


@dataclass(slots=True, eq=False)
class BridgeClaim(Claim):
    """A claim with the job's data, which settling it may change."""

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
        self._remember_ms = options.remember_ms
        self._routes = KnownRoutes(options, settings.queue)
        self._wakeup = Wakeup(store, scripts, keys, settings.queue)
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
        for index, outcome in enumerate(outcomes):
            held = _held(outcome.claim)
            if isinstance(outcome, Completed):
                completed += (
                    held.job.id,
                    held.token,
                    written.success(outcome, held.started_ms, now, self._signature),
                    held.template,
                )
                completed_at.append(index)
            else:
                others_at.append((index, self._encode(others, outcome, held, now)))
        settled = await self._call(claim, (len(completed_at), len(others_at)), [*completed, *others])
        verdicts = [Verdict.COMPLETED] * len(outcomes)
        for index, verdict in others_at:
            verdicts[index] = verdict
        for index, code in zip([*completed_at, *(index for index, _ in others_at)], settled.codes, strict=True):
            if code:
                verdicts[index] = Verdict.LOST
        claims = settled.claims
        if settled.routes_changed and len(claims) < claim:
            try:
                settled = await self._call(claim - len(claims), (0, 0), ())
            except StoreUnavailable:
                # The first call has succeeded: its outcomes are settled, and its claims are valid.
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
        self._clock.set_server_ms(int(now))
        if update:
            self._routes.update(*update)
        # True also if another call of this worker has updated them while this one was in progress.
        changed = self._routes.rows != asked_for
        claims = self._read(jobs, token, int(now)) if jobs else []
        if look:
            self._wakeup.seen = look
        waits = [held / 1000] if held else []
        if due >= 0:
            waits.append(due / 1000)
        if more or len(claims) < len(jobs) // 2:
            waits.append(0.0)
        claims = await self._push_back_others(claims)
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

    async def _push_back_others(self, claims: list[BridgeClaim]) -> list[BridgeClaim]:
        """Pushes back jobs whose own data does not admit this worker: a peer has changed it since it was indexed."""
        ours = [claim for claim in claims if claim.doomed is not None or self._may_run(claim.document)]
        if len(ours) == len(claims):
            return claims
        others = [claim for claim in claims if claim not in ours]
        args: list[Argument] = []
        for claim in others:
            args += ("U", claim.job.id, claim.token)
        ids = [claim.job.id for claim in others]
        pushed_back = counted(len(ids), "job")
        _log.warning("type %s: pushed back %s whose target is another worker: %s", self._type, pushed_back, ids)
        with suppress(StoreUnavailable):  # then their leases expire and they are recovered
            await self._call(0, (0, len(others)), args)
        return ours

    def _may_run(self, document: codec.Document) -> bool:
        if document.get("type") != self._type:
            return False
        return not document.get("target") or route_of(document).admits(self._profile)

    def _encode(self, args: list[Argument], outcome: Outcome, held: BridgeClaim, now: int) -> Verdict:
        """Appends an outcome to the script's arguments. Returns the verdict that it gets if the script accepts it."""
        job_id, document = held.job.id, held.document
        if isinstance(outcome, Released):
            args += ("P", job_id, held.token, *route_arguments(route_of(document)))
            return Verdict.RELEASED
        if isinstance(outcome, Snoozed):
            args += ("S", job_id, held.token, max(0, round(outcome.delay * 1000)))
            return Verdict.SNOOZED
        assert isinstance(outcome, Failed)  # noqa: S101 `settle` encodes completions itself
        decision = decide(outcome, document, self._settings.max_backoff)
        result = written.failure(outcome, held.started_ms, now, self._signature)
        template = held.template
        if decision.delay is None:
            data = written.after_failure(document, reset_attempts=bool(template))
            # Data that can't be read is kept as it is, for an operator to see in the dead letter list.
            args += ("F" if document else "B", job_id, held.token)
            args += (data, result, template) if document else (result,)
            return Verdict.FAILED
        ready = now + decision.delay
        if self._remember_ms is not None:
            times = {"started_ms": held.started_ms, "now_ms": now, "ready_ms": ready, "keep_ms": self._remember_ms}
            document = written.with_run(document, outcome, worker=self._name, **times)
        changed = written.after_failure(document, ready_ms=ready, reroute=decision.reroute)
        if decision.delay > 0:
            args += ("D", job_id, held.token, changed, result, template, decision.delay)
        else:
            front = "f" if held.job.priority >= codec.FRONT_FROM else ""
            route = route_of(codec.parse(changed) or {}) if decision.reroute else route_of(document)
            args += ("R", job_id, held.token, changed, result, template, *route_arguments(route), front)
        return Verdict.RETRIED

    # --- waiting, leases, duties ------------------------------------------------------------------------------------

    async def wait(self, timeout: float) -> None:
        await self._wakeup.wait(timeout)

    async def pass_on(self) -> None:
        """Does nothing: a wakeup reaches all waiting workers of the type."""

    async def extend(self, claims: Sequence[Claim]) -> Collection[Claim]:
        return await extend_in_batches(claims, self._extend)

    async def _extend(self, claims: Sequence[Claim]) -> list[Claim]:
        args: list[Argument] = [self._type, self._lease_ms]
        for claim in claims:
            args += (claim.job.id, _held(claim).server, claim.token)
        positions: list[int] = await self._scripts.run("extend", [self._keys.base], args)
        return [claims[position - 1] for position in positions]

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
        # A little less than the period, so that a worker's own next check is never skipped as too early.
        period = max(1, round(self._settings.recover_every * 900))
        args: list[Argument] = [self._type, period]
        ids: list[bytes] = await self._scripts.run("recover", [self._keys.base], args)
        return DutyReport([job_id.decode(errors="replace") for job_id in ids])

    async def reset(self) -> None:
        await self._wakeup.reset()
        await self._store.reset()

    async def close(self) -> None:
        await self._wakeup.close()
        # If the store is unavailable, the worker's heartbeat expires and its entry is removed later.
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
