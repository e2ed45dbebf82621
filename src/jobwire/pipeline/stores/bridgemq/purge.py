"""Removes archived jobs from the store, each only if it has not changed since it was archived."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.pipeline.stores.boundary import Purged, Stamp
from jobwire.pipeline.stores.bridgemq.index import BACKEND, Index
from jobwire.pipeline.stores.redisio.scripts import load

_STEP = 200
"""Jobs in one call: the server is blocked for about 10 ms (50 µs a job)."""
_PLACES = {"completed": "completed", "failed": "dead", "dead": "dead"}


def purge(index: Index, stamps: Sequence[Stamp]) -> Purged:
    script = load(__package__ or "", "purge", BACKEND)
    removed: set[str] = set()
    for start in range(0, len(stamps), _STEP):
        words = [
            word
            for stamp in stamps[start : start + _STEP]
            for word in (stamp.id, _PLACES.get(stamp.state, ""), stamp.fingerprint)
        ]
        removed.update(
            job_id.decode() for job_id in index.connection.run(script, index.keys.base, [index.kind, *words])
        )
    return Purged(
        removed=[stamp.id for stamp in stamps if stamp.id in removed],
        kept=[stamp.id for stamp in stamps if stamp.id not in removed],
    )
