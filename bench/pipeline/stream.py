"""A BullMQ event stream with the lives of jobs in it, longer than any that BullMQ would leave untrimmed."""

from __future__ import annotations

from itertools import islice

from bench.pipeline import lives
from redis import Redis

from jobwire import urls
from jobwire.backends.bullmq.keys import Keys

CHUNK = 5000


def fill(url: str, queue: str, events: int) -> int:
    """Have about so many events in the queue's stream; how many they are."""
    address = urls.parse(url)
    key = Keys(address.options["prefix"], queue).events
    source = lives.told(lives.jobs_for(events))
    with Redis.from_url(address.driver_url) as redis:
        while some := list(islice(source, CHUNK)):
            pipeline = redis.pipeline(transaction=False)
            for one in some:
                pipeline.xadd(key, {"event": one.kind, "jobId": str(one.job), **dict(one.fields)}, id=one.id)
            pipeline.execute()
        return int(redis.xlen(key))
