"""A job at an interval and a job by cron, added once however many workers run: python schedule.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire. Needs a protocol with intervals: BullMQ.
"""

import asyncio

from jobwire import App

app = App()
ran = asyncio.Event()


@app.task
async def clean(folder: str) -> str:
    ran.set()
    return f"cleaned {folder}"


async def main() -> None:
    async with app, app.worker():
        # Storing a schedule again under its key replaces it, so a program may do this at every start.
        await clean.schedule("often", every=60, immediately=True, folder="/tmp")
        await clean.schedule("nightly", cron="0 3 * * *", tz="Europe/Berlin", folder="/var/tmp")
        await asyncio.wait_for(ran.wait(), 30)
        queue = app.queue("clean")
        for schedule in sorted(await queue.schedules(), key=lambda one: one.key):
            print(schedule.key, schedule.cron or f"every {schedule.every:g} s", schedule.data)
            await queue.unschedule(schedule.key)


if __name__ == "__main__":
    asyncio.run(main())
