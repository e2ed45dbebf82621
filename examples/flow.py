"""A job that waits for other jobs and reads their results: python flow.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire. Needs a protocol with flows: BullMQ.
"""

import asyncio

from jobwire import ActiveJob, Flow, FlowJob, Worker, connect


async def scan(job: ActiveJob) -> int:
    if job.data["page"] == 3:
        raise ValueError("the page is torn")
    return job.data["page"] * 100  # the number of words on it


async def bind(job: ActiveJob) -> dict[str, object]:
    children = await job.children()
    return {"words": sum(children.values.values()), "missing": sorted(children.ignored.values())}


async def main() -> None:
    async with (
        connect() as connection,
        Flow(connection) as flow,
        Worker({"pages": scan, "books": bind}, url=connection),
    ):
        pages = [FlowJob("pages", {"page": number}, on_failure="ignore") for number in (1, 2, 3)]
        tree = await flow.add(FlowJob("books", {"title": "Queues"}, children=pages))  # all of it, or nothing
        print(await tree.job.wait(timeout=30))


if __name__ == "__main__":
    asyncio.run(main())
