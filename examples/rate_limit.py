"""At most so many starts in a time, over all workers together: python rate_limit.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire. Needs a protocol with rate limits: all but Monque.
"""

import asyncio
import time

from jobwire import ActiveJob, NewJob, Queue, Rate, Worker, connect

starts: list[float] = []


async def send(job: ActiveJob) -> None:
    starts.append(time.monotonic())


async def main() -> None:
    async with connect() as connection, Queue("limited", connection) as queue:
        jobs = await queue.add_many([NewJob({"to": number}) for number in range(6)])
        async with Worker("limited", send, connection, concurrency=10, rate=Rate(2, per=0.2)):
            for job in jobs:
                await job.wait(timeout=30)
    print(len(starts), "jobs, the last one after", "more" if starts[-1] - starts[0] > 0.2 else "less", "than 0.2 s")


if __name__ == "__main__":
    asyncio.run(main())
