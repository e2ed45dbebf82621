"""A typed task: its call, its run and its result. Without JOBWIRE_URL it uses an embedded server in ./.jobwire."""

import asyncio
from dataclasses import dataclass

from jobwire import App, Backoff

app = App()


@dataclass
class Receipt:
    to: str
    number: int


@app.task(queue="emails", attempts=3, backoff=Backoff.exponential(1.0), timeout=30)
async def send_welcome(to: str, language: str = "en") -> Receipt:
    return Receipt(to, number=len(to))


async def main() -> None:
    async with app, app.worker(concurrency=10):  # in production: jobwire worker tasks:app --processes 2
        job = await send_welcome.add("a@example.com")  # stored as {"to": "a@example.com", "language": "en"}
        receipt = await job.wait(timeout=30)  # a Receipt, for your editor too
        print(receipt.to, receipt.number)


if __name__ == "__main__":
    asyncio.run(main())
