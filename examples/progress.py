"""Progress and log lines of a running job, read from outside: python progress.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire.
"""

import asyncio

from jobwire import App, current_job

app = App()
half = asyncio.Event()
go_on = asyncio.Event()


@app.task
async def convert(file: str) -> str:
    job = current_job()
    await job.update_progress(50)  # any JSON value
    await job.log(f"read {file}")
    half.set()
    await go_on.wait()
    await job.log("written")
    return f"{file}.pdf"


async def main() -> None:
    async with app, app.worker():
        job = await convert.add("letter.txt")
        await asyncio.wait_for(half.wait(), 30)
        seen = await convert.get(job.id)
        print(seen.state.value, seen.progress)
        go_on.set()
        print(await job.wait(timeout=30), list(await app.queue("convert").logs(job.id)))


if __name__ == "__main__":
    asyncio.run(main())
