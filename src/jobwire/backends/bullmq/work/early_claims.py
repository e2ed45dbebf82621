"""Early claims: the server claims a job for a waiting worker at the moment when its wait ends.

The worker's next claim takes the job. If the worker can't take it, the claim is undone without a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobwire.backends.bullmq import codec
from jobwire.backends.redisio.scripts import Argument
from jobwire.boundary import Claim, Released

_SET_BY_A_CLAIM = ("processedOn", "ats", "pb")


@dataclass(frozen=True, slots=True)
class EarlyClaim:
    """A claim that the worker has not taken yet."""

    claim: Claim
    claimed_ms: int
    """The time of the claim by the server's clock."""
    trace: tuple[Argument, ...]
    """The job's score, the id of its event and the fields of its hash before the claim, as arguments of the script."""


@dataclass(frozen=True, slots=True)
class UndoneClaim(Released):
    """Puts the job back as if it had never been claimed. No handler has seen it."""

    trace: tuple[Argument, ...]


def early_claims(
    claims: Sequence[Claim], jobs: Sequence[Any], traces: Sequence[bytes], claimed_ms: int
) -> list[EarlyClaim]:
    """Returns the claims with the arguments that undoing them needs. `jobs` and `traces` are from the script's reply,
    two items per job."""
    made: list[EarlyClaim] = []
    for index, claim in enumerate(claims):
        before = codec.raw_fields(jobs[2 * index + 1])
        fields = (before.get(name, b"") for name in _SET_BY_A_CLAIM)
        made.append(EarlyClaim(claim, claimed_ms, (*traces[2 * index : 2 * index + 2], *fields)))
    return made
