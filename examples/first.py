"""A producer and a worker on one queue. Without JOBWIRE_URL they use an embedded server in ./.jobwire."""

import asyncio

from jobwire import ActiveJob, Backoff, NewJob, Queue, Worker


async def handle(job: ActiveJob) -> dict[str, str]:  # a plain def would run in a thread
    await job.update_progress(50)
    await job.log(f"writing to {job.data['to']}")
    return {"sent": job.data["to"]}  # an exception leads to the next attempt, Unrecoverable fails the job at once


async def main() -> None:
    async with Queue("emails") as queue, Worker("emails", handle, concurrency=10):
        job = await queue.add({"to": "a@example.com"}, name="welcome", attempts=3, backoff=Backoff.exponential(1.0))
        jobs = await queue.add_many([NewJob({"to": f"{who}@example.com"}, name="welcome") for who in "bc"])
        for each in [job, *jobs]:
            print(each.id, await each.wait(timeout=30))


asyncio.run(main())
