"""Work for the processor in child processes, which can crash or be killed alone: python processes.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire.
"""

import asyncio
import os

from jobwire import App, JobFailed

app = App()


@app.task(executor="process", timeout=20)
def primes(below: int) -> int:
    if below < 0:
        os._exit(1)  # as a crash in C code would
    return sum(all(number % divisor for divisor in range(2, number)) for number in range(2, below))


async def main() -> None:
    async with app, app.worker(concurrency=2):
        print(await (await primes.add(500)).wait(timeout=30))
        try:
            await (await primes.add(-1)).wait(timeout=30)
        except JobFailed as failed:
            print("failed:", failed)
        print(await (await primes.add(100)).wait(timeout=30))  # the worker goes on


if __name__ == "__main__":
    asyncio.run(main())
