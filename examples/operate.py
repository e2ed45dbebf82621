"""What an operator does: find failed jobs, correct and run them again, promote a delayed one: python operate.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire. Needs a protocol with edits: BullMQ.
"""

import asyncio

from jobwire import ActiveJob, Queue, Worker, connect


async def send(job: ActiveJob) -> str:
    if "@" not in job.data["to"]:
        raise ValueError("not an address")
    return f"sent to {job.data['to']}"


async def main() -> None:
    async with connect() as connection, Queue("mended", connection) as queue:
        wrong = await queue.add({"to": "ann"})
        later = await queue.add({"to": "bob@example.com"}, delay=3600)
        worker = Worker("mended", send, connection)
        await worker.run_until_idle()

        async for failed in queue.iter_jobs("failed"):
            print("failed:", failed.data, failed.error)
            await queue.admin.update_data(failed.id, {"to": f"{failed.data['to']}@example.com"})
            await queue.admin.retry(failed.id)
        await queue.admin.promote(later.id)

        await worker.run_until_idle()
        print(await wrong.wait(timeout=30), "and", await later.wait(timeout=30))
        print({state.value: number for state, number in (await queue.counts()).items() if number})


if __name__ == "__main__":
    asyncio.run(main())
