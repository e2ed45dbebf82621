"""Jobs claimed by hand, in a loop of your own. Without JOBWIRE_URL it uses an embedded server in ./.jobwire."""

import asyncio

from jobwire import NewJob, Queue


async def main() -> None:
    async with Queue("images") as queue:
        await queue.add_many([NewJob({"file": name}) for name in ("a.png", "b.png", "c.txt")])
        while job := await queue.claim(timeout=0.5):  # None if there is none within half a second
            if job.data["file"].endswith(".png"):
                await job.complete({"label": "cat"})
            else:
                await job.fail("not an image", retry=False)
            print(job.data["file"], (await queue.get(job.id)).state.value)


asyncio.run(main())
