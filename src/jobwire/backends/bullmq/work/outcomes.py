"""Encodes outcomes as arguments of the settle script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from jobwire import codec as json_codec
from jobwire.backends.bullmq.work.early_claims import UndoneClaim
from jobwire.backends.bullmq.work.retry import decide, milliseconds
from jobwire.backends.bullmq.work.stored_options import DEFAULTS, Kept, StoredOptions
from jobwire.backends.redisio.scripts import Argument
from jobwire.boundary import (
    Claim,
    Completed,
    ConsumerSettings,
    Failed,
    Outcome,
    Parked,
    Released,
    Snoozed,
    Throttled,
    Verdict,
)
from jobwire.errors import MalformedPayload


@dataclass(slots=True, eq=False)
class BullClaim(Claim):
    """A claim with the job's options, which settling it needs."""

    options: StoredOptions = DEFAULTS
    native_id: bytes = b""
    """The id as it is stored. A peer may have written one that is not valid text."""

    @property
    def trace_context(self) -> Mapping[str, str]:
        """The headers, which BullMQ's telemetry stores as the text of a JSON object."""
        try:
            found: Any = json_codec.loads(self.options.trace.encode()) if self.options.trace else {}
        except (MalformedPayload, UnicodeEncodeError):
            return {}
        headers = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        return {name: value for name, value in headers.items() if isinstance(value, str)}


def options_of(claim: Claim) -> StoredOptions:
    return claim.options if isinstance(claim, BullClaim) else DEFAULTS


def native_id(claim: Claim) -> Argument:
    return claim.native_id if isinstance(claim, BullClaim) else claim.job.id


def encode_completed(outcomes: Sequence[Outcome], keep_completed: Kept) -> tuple[list[int], list[Argument]]:
    """Returns the positions of the completed jobs, in the order in which the script handles them, and its arguments.
    Jobs of one claim usually share all but id and result, so these are sent once for each group of such jobs."""
    groups: dict[tuple[Argument, ...], tuple[list[int], list[Argument]]] = {}
    for position, outcome in enumerate(outcomes):
        if isinstance(outcome, Completed):
            held = outcome.claim
            job = held.job
            keep = options_of(held).keep_completed or keep_completed
            shared = (held.token, *keep, job.attempts_made + 1, job.raw.get("deid", ""))
            members, jobs = groups.get(shared) or groups.setdefault(shared, ([], []))
            members.append(position)
            jobs += (native_id(held), outcome.result)
    positions: list[int] = []
    args: list[Argument] = []
    for shared, (members, jobs) in groups.items():
        positions += members
        args += (len(members), *shared, *jobs)
    return positions, args


def encode(
    args: list[Argument], outcome: Failed | Released | Snoozed, settings: ConsumerSettings, keep_failed: Kept
) -> Verdict:
    """Appends an outcome other than completion to the arguments. Returns its verdict, if the script accepts it."""
    held = outcome.claim
    job_id = native_id(held)
    if isinstance(outcome, Parked):
        args += ("W", job_id, held.token)
        return Verdict.PARKED
    if isinstance(outcome, Throttled):
        args += ("L", job_id, held.token, max(1, round(outcome.delay * 1000)))
        return Verdict.RELEASED
    if isinstance(outcome, UndoneClaim):
        args += ("U", job_id, held.token, *outcome.trace)
        return Verdict.RELEASED
    if isinstance(outcome, Released):
        args += ("P", job_id, held.token)
        return Verdict.RELEASED
    if isinstance(outcome, Snoozed):
        args += ("S", job_id, held.token, max(0, round(outcome.delay * 1000)))
        return Verdict.SNOOZED
    options = options_of(held)
    decision = decide(outcome, options, settings)
    reason = decision.reason.encode(errors="replace")
    stacks = json_codec.dumps(_stacks(outcome, options))
    if decision.delay is None:
        keep = options.keep_failed or keep_failed
        args += ("F", job_id, held.token, reason, stacks, options.attempts, *keep)
        return Verdict.FAILED
    if (wait := milliseconds(decision.delay)) > 0:
        args += ("D", job_id, held.token, reason, stacks, wait)
    else:
        args += ("R", job_id, held.token, reason, stacks, "l" if options.lifo else "")
    return Verdict.RETRIED


def _stacks(failed: Failed, options: StoredOptions) -> list[str]:
    """Returns the stack traces of all failed runs, oldest first, or the newest ones that the job's option keeps. BullMQ
    has one for every failed run. For a run that failed without its handler, the reason takes its place."""
    stacks = [*failed.claim.job.stacktrace, failed.stack or failed.error]
    if options.stack_limit is None:
        return stacks
    return stacks[-options.stack_limit :] if options.stack_limit else []
