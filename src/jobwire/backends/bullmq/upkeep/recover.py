"""Recovers stalled jobs: those whose worker died or lost its connection.

All workers of a queue share one check per period, through a key that lives for one period. A worker comes back a little
later than that, so that the key has expired when it does.
"""

from __future__ import annotations

from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.redisio.clock import ServerClock
from jobwire.backends.redisio.scripts import Scripts
from jobwire.boundary import ConsumerSettings, DutyReport

AFTER_CHECK = 0.1
"""Seconds that a worker adds to the period."""


async def recover(clock: ServerClock, scripts: Scripts, keys: Keys, settings: ConsumerSettings) -> DutyReport:
    """Makes stalled jobs ready again, unless another worker has done so in this period."""
    args = [await clock.now_ms(), round(settings.recover_every * 1000), settings.max_stalled]
    ids: list[bytes] = await scripts.run("recover", [keys.base], args)
    return DutyReport([job_id.decode(errors="replace") for job_id in ids])
