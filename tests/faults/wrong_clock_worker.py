"""A worker, and a producer, whose clock is wrong: python wrong_clock_worker.py URL SECONDS."""

from __future__ import annotations

import asyncio
import datetime as datetimes
import sys
import time

OFFSET = float(sys.argv[2])
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + OFFSET
time.time_ns = lambda: _time_ns() + int(OFFSET * 1e9)


class _Datetime(datetimes.datetime):
    @classmethod
    def now(cls, tz: datetimes.tzinfo | None = None) -> datetimes.datetime:
        return super().now(tz) + datetimes.timedelta(seconds=OFFSET)


datetimes.datetime = _Datetime  # before anything of jobwire is imported, so that all of it has this clock

from jobwire import ActiveJob, Queue, Worker, connect  # noqa: E402
from jobwire.backends.pgboss import Boss  # noqa: E402


async def handle(job: ActiveJob) -> None:
    await asyncio.sleep(job.data["sleep"])


async def main() -> None:
    async with connect(sys.argv[1]) as connection, Queue("work", connection) as queue:
        await queue.add({"sleep": 0, "kind": "delayed"}, delay=2)
        await queue.add({"sleep": 5, "kind": "long"})
        for _ in range(2):
            await Boss(connection).debounced("work", {"sleep": 0, "kind": "debounced"}, 3600, "key")
        await Worker("work", handle, connection, concurrency=5, lease=4, recover_every=0.2).run()


if __name__ == "__main__":
    asyncio.run(main())
