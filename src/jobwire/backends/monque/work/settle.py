"""Turns outcomes into updates of job documents, each bound to the claim that it ends.

An update matches only while the job is `processing`, has our `claimedBy` (the peer's rule) and the token of this claim:
by its own fields, the peer can't distinguish two claims of one instance. Every update of one call writes the same
`updatedAt`. The server returns only the number of documents that matched, so the jobs that this call has settled are
recognised by that `updatedAt`. For the same reason the call may be repeated after a lost answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pymongo import UpdateMany, UpdateOne

from jobwire.backends.monque.codec import ONE_OFF, PRIVATE, cron_of, fail_count, stalls_of
from jobwire.backends.monque.connection.clock import moment
from jobwire.backends.monque.connection.side_data import Run
from jobwire.backends.monque.connection.store import Document
from jobwire.backends.monque.payload import LIMIT
from jobwire.backends.monque.work.retry import decide
from jobwire.backends.monque.worker_options import WorkerOptions
from jobwire.boundary import Claim, Completed, ConsumerSettings, Failed, Outcome, Released, Snoozed, Verdict
from jobwire.cron import Cron
from jobwire.errors import InvalidOption, megabytes

NULL = b"null"
RELEASE = {"lockedAt": "", "claimedBy": "", "lastHeartbeat": ""}
GONE = {**RELEASE, PRIVATE: ""}
_FINISH = {**GONE, "failReason": ""}
_STATUS = {Verdict.COMPLETED: "completed", Verdict.FAILED: "failed"}
_LONGEST_STACK = 16 * 1024

Request = UpdateOne | UpdateMany


@dataclass(frozen=True, slots=True)
class Planned:
    """One outcome: the verdict if its update matches, and the run to record."""

    claim: Claim
    verdict: Verdict
    recurring: Completed | None = None
    """The outcome, if the job is to be pending again by its cron expression. That may be changed while the job runs."""
    run: Run | None = None

    @property
    def key(self) -> Any:
        return self.claim.job.raw["_id"]

    def landed(self, document: Document | None, at: Any) -> bool:
        """Returns True if the document, read after the updates, is as this outcome leaves it."""
        if document is None or document.get("updatedAt") != at:
            return False
        status = document.get("status")
        if self.recurring and status == "completed":
            return True  # its schedule was deleted while it ran
        expected = "pending" if self.recurring else _STATUS.get(self.verdict, "pending")
        return status == expected


@dataclass(slots=True)
class Plan:
    """The updates that settle the outcomes of one call."""

    at_ms: int
    planned: list[Planned] = field(default_factory=list[Planned])
    requests: list[Request] = field(default_factory=list[Request])
    reorders: bool = False
    """True if a job becomes pending again. A claim must then read the queue after these updates."""

    @property
    def runs(self) -> list[Run]:
        return [one.run for one in self.planned if one.run is not None]


class Planner:
    """Makes the plans of one worker."""

    def __init__(self, settings: ConsumerSettings, options: WorkerOptions, worker: str, tz: str) -> None:
        self._settings = settings
        self._options = options
        self._worker = worker
        self._tz = tz

    def plan(self, outcomes: Sequence[Outcome], at_ms: int) -> Plan:
        plan = Plan(at_ms)
        alike: dict[str, list[Any]] = defaultdict(list)
        for outcome in outcomes:
            match outcome:
                case Completed():
                    self._complete(plan, outcome, alike)
                case Failed():
                    self._fail(plan, outcome)
                case Released():
                    self._put_back(plan, outcome.claim, Verdict.RELEASED, None)
                case Snoozed():
                    due = at_ms + round(outcome.delay * 1000)
                    self._put_back(plan, outcome.claim, Verdict.SNOOZED, due)
        # All completed jobs that do not repeat get the same update, so those of one claim share a statement.
        done = {"$set": {"status": "completed", "updatedAt": moment(at_ms)}, "$unset": _FINISH}
        for token, keys in alike.items():
            plan.requests.append(several(keys, self._held_by(token), done))
        return plan

    def _held_by(self, token: str) -> Document:
        return {"status": "processing", "claimedBy": self._worker, f"{PRIVATE}.claim": token}

    def _own(self, claim: Claim) -> Document:
        return {"_id": claim.job.raw["_id"], **self._held_by(claim.token)}

    def _complete(self, plan: Plan, outcome: Completed, alike: dict[str, list[Any]]) -> None:
        claim, cron = outcome.claim, cron_of(outcome.claim.job.raw)
        if len(outcome.result) > LIMIT:
            size = f"{megabytes(len(outcome.result))} exceeds limit of {megabytes(LIMIT)}"
            self._fail(plan, Failed(claim, f"Job result size {size}", final=True))
            return
        run = None
        if self._options.results and outcome.result != NULL:
            run = self._run(plan, claim, result=outcome.result.decode(), repeats=cron is not None)
        if cron is None:
            plan.planned.append(Planned(claim, Verdict.COMPLETED, run=run))
            alike[claim.token].append(claim.job.raw["_id"])
            return
        try:
            due = Cron.parse(cron).next_ms(plan.at_ms, self._tz)
        except InvalidOption as error:
            # As in the peer: the run has completed, but a job whose next time can't be computed has failed.
            self._fail(plan, Failed(claim, str(error)))
            return
        plan.planned.append(Planned(claim, Verdict.COMPLETED, recurring=outcome, run=run))
        own, now = self._own(claim), moment(plan.at_ms)
        again = {"status": "pending", "nextRunAt": moment(due), "failCount": 0, "updatedAt": now}
        plan.requests += [
            UpdateOne({**own, "repeatInterval": cron}, {"$set": again, "$unset": _FINISH}),
            UpdateOne(
                {**own, **ONE_OFF},  # unscheduled while it ran
                {"$set": {"status": "completed", "updatedAt": now}, "$unset": _FINISH},
            ),
        ]

    def _fail(self, plan: Plan, outcome: Failed) -> None:
        claim = outcome.claim
        failures = fail_count(claim.job.raw) + 1
        decision = decide(outcome, failures, self._settings, self._options)
        change: Document = {
            "status": "failed" if decision.delay is None else "pending",
            "failCount": failures,
            "failReason": decision.reason,
            "updatedAt": moment(plan.at_ms),
        }
        if decision.delay is not None:
            change["nextRunAt"] = moment(plan.at_ms + round(decision.delay * 1000))
            plan.reorders = True
        due = change.get("nextRunAt")
        run = self._run(plan, claim, stack=outcome.stack[-_LONGEST_STACK:], due=due) if outcome.stack else None
        verdict = Verdict.FAILED if decision.delay is None else Verdict.RETRIED
        plan.planned.append(Planned(claim, verdict, run=run))
        plan.requests.append(UpdateOne(self._own(claim), {"$set": change, "$unset": GONE}))

    def _put_back(self, plan: Plan, claim: Claim, verdict: Verdict, due: int | None) -> None:
        change: Document = {"status": "pending", "updatedAt": moment(plan.at_ms)}
        if due is not None:
            change["nextRunAt"] = moment(due)
        gone = dict(RELEASE)
        stalls = stalls_of(claim.job.raw)
        if stalls:
            change[PRIVATE] = {"stalls": stalls}
        else:
            gone[PRIVATE] = ""
        plan.reorders = True
        plan.planned.append(Planned(claim, verdict))
        plan.requests.append(UpdateOne(self._own(claim), {"$set": change, "$unset": gone}))

    def _run(
        self,
        plan: Plan,
        claim: Claim,
        *,
        result: str | None = None,
        stack: str = "",
        repeats: bool = False,
        due: datetime | None = None,
    ) -> Run:
        job = claim.job
        stack = stack.encode(errors="replace").decode()
        return Run(
            job.raw["_id"],
            job.queue,
            plan.at_ms,
            claim.token,
            job.started_at,
            self._worker,
            result,
            stack,
            repeats,
            due,
        )


def several(keys: list[Any], condition: Document, change: Document) -> Request:
    """Returns one statement for all keys: UpdateOne for a single one, which the driver itself repeats after a
    failover."""
    if len(keys) == 1:
        return UpdateOne({"_id": keys[0], **condition}, change)
    return UpdateMany({"_id": {"$in": keys}, **condition}, change)
