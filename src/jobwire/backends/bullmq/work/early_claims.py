"""Jobs claimed along with a wait, on trial: the worker's next claim takes them, or they go back without a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobwire.backends.bullmq import codec
from jobwire.backends.redisio.scripts import Argument
from jobwire.boundary import Claim, Released

_SET_BY_A_CLAIM = ("processedOn", "ats", "pb")


@dataclass(frozen=True, slots=True)
class Trial:
    """A claim that the worker has not taken yet."""

    claim: Claim
    claimed_ms: int
    """When the server made it, by its clock."""
    trace: tuple[Argument, ...]
    """Where the job stood and what its hash had before, as the script takes it."""


@dataclass(frozen=True, slots=True)
class TakenBack(Released):
    """The job goes back as if it had never been claimed. No handler has seen it."""

    trace: tuple[Argument, ...]


def trials(claims: Sequence[Claim], jobs: Sequence[Any], traces: Sequence[bytes], claimed_ms: int) -> list[Trial]:
    """The claims with what their taking back would need; `jobs` and `traces` are the script's, two items per job."""
    made: list[Trial] = []
    for place, claim in enumerate(claims):
        before = codec.raw_fields(jobs[2 * place + 1])
        fields = (before.get(name, b"") for name in _SET_BY_A_CLAIM)
        made.append(Trial(claim, claimed_ms, (*traces[2 * place : 2 * place + 2], *fields)))
    return made
