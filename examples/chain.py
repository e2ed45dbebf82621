"""Calls of tasks one after the other, side by side, and one for all results: python chain.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire. Needs BullMQ or pg-boss.
"""

import asyncio

from jobwire import App, chain, chord, group

app = App()


@app.task
async def charge(order: int) -> str:
    return f"receipt-{order}"


@app.task
async def ship(receipt: str, express: bool = False) -> str:
    return f"{receipt} shipped{' by air' if express else ''}"


@app.task
async def count(page: int) -> int:
    return page * 100


@app.task
async def total(counts: list[int]) -> int:
    return sum(counts)


async def main() -> None:
    async with app, app.worker():
        last = await chain(charge.s(7), ship.s(express=True)).add()  # the result of one is the argument of the next
        print(await last.wait(timeout=30))
        jobs = await group(count.s(1), count.s(2)).add()
        print(await jobs.wait(timeout=30))
        summed = await chord([count.s(page) for page in range(5)], total.s()).add()
        print(await summed.wait(timeout=30))


if __name__ == "__main__":
    asyncio.run(main())
