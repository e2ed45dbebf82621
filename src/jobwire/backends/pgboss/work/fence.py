"""Values of the statements that end or extend claims.

Each of those statements changes a job only while the claim is valid: the job is active, in the attempt and with the
moment of start that the claim has read. Where statements take several jobs, every value is an array, one entry a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobwire.backends.pgboss.connection.pipelined import Value
from jobwire.backends.pgboss.connection.values import plain_list, text
from jobwire.backends.pgboss.work.claims import PgClaim


def fence(
    queue: str, ids: Sequence[str], attempts: Sequence[int], starts: Sequence[str], heartbeats: Sequence[int | None]
) -> dict[str, Value]:
    """Returns the values that name the claims. `heartbeats` are those that the jobs get back when the claims end."""
    return {
        "queue": text(queue),
        "ids": plain_list(ids),
        "attempts": plain_list(attempts),
        "starts": ('{"' + '","'.join(starts) + '"}').encode(),
        "heartbeats": plain_list(heartbeats),
    }


def fence_of(queue: str, claims: Sequence[PgClaim]) -> dict[str, Value]:
    """Returns the values that name these claims."""
    return fence(
        queue,
        [claim.job.id for claim in claims],
        [claim.attempt for claim in claims],
        [claim.started for claim in claims],
        [claim.own_heartbeat for claim in claims],
    )


def failing(
    outputs: Iterable[bytes], finals: Iterable[bool], waits: Sequence[float | None], reserves: Sequence[int]
) -> dict[str, Value]:
    """Returns the values that `fail_or_retry.sql` takes beside the fence.

    A wait of None is pg-boss's own. A reserve is the number of attempts that the claim has added to `retry_limit`.
    """
    return {
        "outputs": json_array(outputs),
        "finals": plain_list(["true" if final else "false" for final in finals]),
        "waits": plain_list(waits),
        "reserves": plain_list(reserves),
    }


def json_array(outputs: Iterable[bytes]) -> bytes:
    """Returns a JSON array of values that are JSON already."""
    return b"[" + b",".join(outputs) + b"]"
