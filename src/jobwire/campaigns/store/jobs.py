"""Jobs: one message of a campaign to one channel each.

A worker claims a job, sends its message and settles the claim. The claim writes the idempotency key before anything is
sent. A settle names the attempt and the start of its claim: if the job was swept or claimed again in the meantime, it
changes nothing and returns None. The counters of the campaign change in the same statement, by a trigger, and the
campaign is COMPLETED with its last job.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobwire import checks
from jobwire.campaigns.ids import id_prefix
from jobwire.campaigns.models import Claim, FedJob, Job, Outcome, Settled, Settlement
from jobwire.campaigns.states import JobStatus
from jobwire.campaigns.store.arrays import plain_array, text_array
from jobwire.campaigns.store.table import PAGE, Connection, Table

LOST = "the worker stopped during the last attempt; the message may have been delivered"
SPENT = "no attempt was left"
ERRORS_TO_DEACTIVATE = 5
"""Failures in a row after which a channel is inactive. The constraint of the table has the same number."""
MANY = 1000
"""Jobs that one statement of the upkeep changes at most: a lock on more would hold up workers."""
CHECKED = 5000
"""Jobs that one statement of the upkeep looks at, of which few are changed."""


class Jobs(Table[Job]):
    """The table `jobs`."""

    kind = "job"
    name = "jobs"
    row = Job

    async def create(self, connection: Connection, campaign_id: str) -> int | None:
        """Creates a job for every active channel of the batch of a RUNNING campaign. Returns how many were created, or
        None if the campaign does not run.

        A second call adds nothing for channels that have a job. A campaign without channels is COMPLETED at once.
        """
        values = {"campaign_id": campaign_id, "prefix": id_prefix()}
        [(created,)] = await self.tuples(connection, "create", values)
        return created

    async def claim(self, connection: Connection, job_id: str, *, held: checks.Seconds = 0) -> Claim | None:
        """Claims one job, as `claim_many` does."""
        return (await self.claim_many(connection, [job_id], held=held)).get(job_id)

    async def claim_many(
        self, connection: Connection, job_ids: Sequence[str], *, held: checks.Seconds = 0
    ) -> dict[str, Claim]:
        """Makes QUEUED jobs SENDING and counts the attempt. Returns the claims by id. Left out are jobs that are not
        QUEUED, that have no attempt left, or whose campaign is not RUNNING. Commit before sending: a crash is then seen
        by `sweep`, which leaves the claims alone for `held` seconds."""
        # Made from tuples, in the order of the fields, which takes half the time.
        found = await self.tuples(
            connection, "claim", {"ids": text_array(job_ids), "held": checks.seconds("held", held)}
        )
        return {row[0]: Claim(*row) for row in found}

    async def settle(self, connection: Connection, settlements: Sequence[Settlement]) -> dict[str, Settled]:
        """Settles claims, and records the outcomes with their channels: SENT resets the count of errors, FAILED counts
        one, and the fifth in a row deactivates the channel. In mode TEST channels are left alone. Returns
        the jobs by id, except those whose claim is lost."""
        values = _fences([one.claim for one in settlements]) | {
            "outcomes": None,
            "errors": None,
            "delays": None,
            "most_errors": ERRORS_TO_DEACTIVATE,
        }
        if any(one.outcome is not Outcome.SENT for one in settlements):
            values |= {
                "outcomes": plain_array([one.outcome.value for one in settlements]),
                "errors": [None if one.error is None else one.error or "unknown" for one in settlements],
                # The driver takes no list of whole numbers and others. Telegram's waits are whole.
                "delays": [None if one.delay is None else float(one.delay) for one in settlements],
            }
        return {one.job_id: one for one in await self.made(connection, "settle", values, Settled)}

    async def settle_sent(self, connection: Connection, claims: Sequence[Claim]) -> list[str]:
        """Settles claims of different jobs whose messages were all sent, as `settle` does, with half the work. Returns
        the ids of the jobs, except those whose claim is lost."""
        return [job_id for (job_id,) in await self.tuples(connection, "settle_sent", _fences(claims))]

    async def sent(self, connection: Connection, claim: Claim) -> Settled | None:
        """SENDING becomes SENT. Returns None if the claim is lost."""
        return await self._settle(connection, Settlement(claim, Outcome.SENT))

    async def failed(self, connection: Connection, claim: Claim, error: str) -> Settled | None:
        """SENDING becomes FAILED, whatever attempts are left. Returns None if the claim is lost."""
        return await self._settle(connection, Settlement(claim, Outcome.FAILED, error))

    async def requeue(self, connection: Connection, claim: Claim, error: str) -> Settled | None:
        """SENDING becomes QUEUED for the next attempt, or FAILED if this was the last. Returns None if the claim is
        lost."""
        return await self._settle(connection, Settlement(claim, Outcome.RETRY, error))

    async def release(self, connection: Connection, claim: Claim) -> Settled | None:
        """SENDING becomes QUEUED without charging the attempt. Returns None if the claim is lost."""
        return await self._settle(connection, Settlement(claim, Outcome.RELEASED))

    async def failed_by_block(self, connection: Connection, claim: Claim, error: str) -> list[Settled] | None:
        """SENDING becomes FAILED because the channel is blocked, and so do all QUEUED jobs of that channel, in every
        campaign that has not ended. Returns them, the claimed one among them, or None if the claim is lost: then
        nothing is ended."""
        values = _fence(claim) | {"channel_id": claim.channel_id, "error": error or "blocked"}
        return await self.made(connection, "failed_by_block", values, Settled) or None

    async def fail_queued(self, connection: Connection, job_ids: Sequence[str], error: str) -> list[Settled]:
        """QUEUED becomes FAILED: these jobs can never be sent. Returns those that it has ended."""
        return await self.made(connection, "fail_queued", {"ids": list(job_ids), "error": error}, Settled)

    async def sweep(self, connection: Connection, older_than: checks.Seconds, *, limit: int = MANY) -> list[Settled]:
        """Ends claims that began longer ago than the given time and are not `held` any more: their worker has died. A
        job becomes QUEUED, or FAILED if it has no attempt left. Returns what was swept."""
        values = {"age": checks.seconds("older_than", older_than), "error": LOST, "limit": limit}
        return await self.made(connection, "sweep", values, Settled)

    async def feed(self, connection: Connection, campaign_id: str, *, due_at: datetime, limit: int) -> list[FedJob]:
        """Takes the next QUEUED jobs of a campaign for the queue: returned ones, then those after the cursor. Returns
        them in that order. `due_at` is the time from which a returned one can be overdue."""
        values = {"campaign_id": campaign_id, "due_at": due_at, "limit": limit}
        return [FedJob(*row) for row in await self.tuples(connection, "feed", values)]

    async def count_fed(self, connection: Connection, campaign_id: str, limit: int) -> int:
        """Returns how many QUEUED jobs of a campaign are in the queue, at most `limit`. Of jobs before the cursor, the
        last `limit` are looked at."""
        return await self.number(connection, "count_fed", {"campaign_id": campaign_id, "limit": limit})

    async def set_aside(self, connection: Connection, job_ids: Sequence[str]) -> list[Settled]:
        """Returns jobs that could not be claimed: QUEUED ones are fed again, and one without an attempt left becomes
        FAILED. One that is SENDING is marked for the sweep."""
        return await self.made(connection, "set_aside", {"ids": list(job_ids), "error": SPENT}, Settled)

    async def unfeed_overdue(
        self, connection: Connection, older_than: checks.Seconds, *, limit: int = MANY
    ) -> list[Settled]:
        """Returns QUEUED jobs whose own place in the queue is longer ago than the given time: the queue has lost them,
        and they are fed again."""
        age = checks.seconds("older_than", older_than)
        return await self.made(connection, "overdue", {"age": age, "limit": limit}, Settled)

    async def walk_indexes(self, connection: Connection) -> None:
        """Lets the statements of this transaction walk the jobs of a campaign by an index, however many there are."""
        await self.tuples(connection, "walk_indexes", {})

    async def unchecked(self, connection: Connection, older_than: checks.Seconds) -> list[str]:
        """Returns the campaigns that have jobs to `check`."""
        found = await self.tuples(connection, "unchecked", {"age": checks.seconds("older_than", older_than)})
        return [campaign_id for (campaign_id,) in found]

    async def check(
        self, connection: Connection, campaign_id: str, older_than: checks.Seconds, *, limit: int = CHECKED
    ) -> list[Settled]:
        """Marks jobs that were fed longer ago than the given time and are still open: QUEUED ones are fed again, and
        SENDING ones are left to `sweep`. Looks at `limit` jobs. Returns those that it has marked."""
        age = checks.seconds("older_than", older_than)
        return await self.made(connection, "check", {"campaign_id": campaign_id, "age": age, "limit": limit}, Settled)

    async def page(
        self, connection: Connection, campaign_id: str, *, status: JobStatus | None = None, limit: int = PAGE,
        after: str = "",
    ) -> list[Job]:  # fmt: skip
        """Returns jobs of a campaign in the order of their ids, beginning after an id: all, or those in one state."""
        values = {"campaign_id": campaign_id, "limit": limit, "after": after, "status": status}
        return await self.rows(connection, "list", values)

    async def purge(self, connection: Connection, sent_before: datetime) -> int:
        """Deletes jobs that were sent before a time. Counters and progress stay. Returns how many were deleted."""
        return await self.number(connection, "purge", {"before": checks.aware("sent_before", sent_before)})

    async def count_sent_before(self, connection: Connection, moment: datetime) -> int:
        """Returns how many jobs `purge` would delete."""
        return await self.number(connection, "count_sent_before", {"before": checks.aware("sent_before", moment)})

    async def _settle(self, connection: Connection, settlement: Settlement) -> Settled | None:
        return (await self.settle(connection, [settlement])).get(settlement.claim.job_id)


def _fences(claims: Sequence[Claim]) -> dict[str, Any]:
    return {
        "ids": text_array([one.job_id for one in claims]),
        "attempts": plain_array([one.attempt for one in claims]),
        "starts": plain_array([one.started_at for one in claims]),
        "tested": text_array([one.job_id for one in claims if one.mode == "TEST"]),
    }


def _fence(claim: Claim) -> dict[str, object]:
    return {"id": claim.job_id, "attempt": claim.attempt, "started_at": claim.started_at}
