"""Removes archived jobs from the store, each only if it has not changed since it was archived."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bullmq.keys import Keys
from jobwire.pipeline.stores.boundary import Purged, Stamp
from jobwire.pipeline.stores.redisio.connection import RedisConnection
from jobwire.pipeline.stores.redisio.scripts import load

_STEP = 200
"""Jobs in one call: the server is blocked for about 10 ms (50 µs a job)."""


def purge(connection: RedisConnection, keys: Keys, stamps: Sequence[Stamp]) -> Purged:
    script = load(__package__ or "", "purge", "jobwire.backends.bullmq")
    removed: set[str] = set()
    for start in range(0, len(stamps), _STEP):
        args = [word for stamp in stamps[start : start + _STEP] for word in stamp]
        removed.update(job_id.decode() for job_id in connection.run(script, keys.base, args))
    return Purged(
        removed=[stamp.id for stamp in stamps if stamp.id in removed],
        kept=[stamp.id for stamp in stamps if stamp.id not in removed],
    )
