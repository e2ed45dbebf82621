"""Finds the one outcome for which a store refuses a whole call, so that it does not hold up the others.

After a refusal outcomes are sent in ever smaller halves, until the refused one is alone. If it is then refused three
times while the store accepts an extension of the same job's lease, the outcome is at fault: a result that can't be
stored, for example. A result is replaced by a failure that names the refusal. Any other outcome is dropped, and the job
is recovered when its lease expires.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.boundary import Claim, Completed, Consumer, Failed, Outcome
from jobwire.deadline import deadline
from jobwire.journal import Journal, fields_of

_TOGETHER = 200
_REFUSALS = 3


class RefusedOutcomes:
    """Counts the refusals of one worker's outcomes. `limit` is how many outcomes one call may send."""

    def __init__(self, consumer: Consumer, call_timeout: float, journal: Journal) -> None:
        self._consumer = consumer
        self._call_timeout = call_timeout
        self._journal = journal
        self._refusals: dict[Claim, int] = {}
        self.limit = _TOGETHER

    def clear(self, outcomes: Sequence[Outcome]) -> None:
        """Records that the store has taken these outcomes."""
        self.limit = _TOGETHER
        if self._refusals:
            for outcome in outcomes:
                self._refusals.pop(outcome.claim, None)

    async def after(self, outcomes: list[Outcome], refusal: Exception) -> tuple[list[Outcome], list[Outcome]]:
        """Returns the outcomes to send again after a refused call, and those that are dropped."""
        self.limit = max(1, len(outcomes) // 2)
        return await self._alone(outcomes[0], refusal) if len(outcomes) == 1 else (outcomes, [])

    async def _alone(self, outcome: Outcome, refusal: Exception) -> tuple[list[Outcome], list[Outcome]]:
        claim = outcome.claim
        refusals = self._refusals[claim] = self._refusals.get(claim, 0) + 1
        if refusals < _REFUSALS or not await self._can_extend(claim):
            return [outcome], []
        del self._refusals[claim]
        if isinstance(outcome, Completed):
            self._journal.error(
                "the store refuses the result of job %s (%s); the job fails",
                claim.job.id, refusal, extra=fields_of(claim, final=True),
            )  # fmt: skip
            return [Failed(claim, f"the store refuses the result: {refusal}")], []
        self._journal.error(
            "the store refuses the outcome of job %s (%s); the job is recovered when its lease expires",
            claim.job.id, refusal, extra=fields_of(claim, final=True),
        )  # fmt: skip
        return [], [outcome]

    async def _can_extend(self, claim: Claim) -> bool:
        try:
            async with deadline(self._call_timeout):
                await self._consumer.extend([claim])
        except Exception:  # the store accepts nothing at all, so this outcome is not at fault
            return False
        return True
