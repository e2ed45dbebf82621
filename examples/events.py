"""What happens in a queue, as it happens, whichever client does it: python events.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire. Needs a protocol with events: BullMQ or Monque.
"""

import asyncio

from jobwire import ActiveJob, EventKind, Queue, Worker, connect


async def handle(job: ActiveJob) -> str:
    return "done"


async def main() -> None:
    async with connect() as connection, Queue("watched", connection) as queue:

        async def watch() -> list[str]:
            seen: list[str] = []
            async for event in queue.events(since="0"):  # from the first event that the store keeps
                seen.append(event.kind.value)
                if event.kind is EventKind.COMPLETED:
                    return seen
            return seen

        watching = asyncio.create_task(watch())
        await queue.add({"to": "a@example.com"})
        async with Worker("watched", handle, connection):
            print(await asyncio.wait_for(watching, 30))


if __name__ == "__main__":
    asyncio.run(main())
