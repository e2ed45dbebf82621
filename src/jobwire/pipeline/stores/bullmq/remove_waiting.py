"""Removes jobs that wait, for a move that has verified their copies."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.redisio.answers import ACTED
from jobwire.boundary import Acted
from jobwire.pipeline.stores.redisio.connection import RedisConnection
from jobwire.pipeline.stores.redisio.scripts import load

_STEP = 500
"""Jobs in one call: the server is blocked for about 5 ms (10 µs a job)."""


def remove_waiting(connection: RedisConnection, keys: Keys, ids: Sequence[str]) -> list[Acted]:
    script = load(__package__ or "", "remove_waiting", "jobwire.backends.bullmq")
    acted: list[Acted] = []
    for start in range(0, len(ids), _STEP):
        acted += map(ACTED.__getitem__, connection.run(script, keys.base, ids[start : start + _STEP]))
    return acted
