"""Attempts, a backoff between them, and an error that ends them: python retries.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire.
"""

import asyncio

from jobwire import App, Backoff, JobFailed, Unrecoverable, current_job

app = App()


@app.task(attempts=3, backoff=Backoff.exponential(0.05))  # waits 0.05 s, then 0.1 s; use seconds in earnest
async def fetch(page: str) -> str:
    run = current_job().attempts_made + 1
    if page == "missing":
        raise Unrecoverable("there is no such page")  # another attempt would not help
    if run < 3:
        raise ConnectionError("no answer")  # any other exception leads to the next attempt
    return f"{page} after {run} runs"


async def main() -> None:
    async with app, app.worker():
        print(await (await fetch.add("news")).wait(timeout=30))
        try:
            await (await fetch.add("missing")).wait(timeout=30)
        except JobFailed as failed:
            print("failed:", failed)


if __name__ == "__main__":
    asyncio.run(main())
