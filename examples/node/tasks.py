"""Python's half of an application whose other half is Node.js. Both use the same BullMQ queues.

| task | added by | run by |
|---|---|---|
| make_invoice | producer.mts | this file: python tasks.py |
| draw_logo | make_invoice, here | worker.mts |

JOBWIRE_URL and REDIS_URL name the same server.
"""

import asyncio
import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

from jobwire import App

app = App()


@dataclass
class Line:
    article: str
    price: Decimal  # text in JSON, which loses no digit
    pieces: int = 1


@dataclass
class Order:
    customer: str
    day: dt.date
    lines: list[Line]


@dataclass
class Logo:
    svg: str
    width: int


@dataclass
class Invoice:
    customer: str
    day: dt.date
    total: Decimal
    logo: Logo


@app.task(queue="logos")
async def draw_logo(text: str, width: int = 100) -> Logo:
    """Is run by worker.mts. This declares its arguments and its result."""
    raise NotImplementedError


@app.task(queue="invoices", attempts=3)
async def make_invoice(order: Order) -> Invoice:
    logo = await draw_logo.add(text=order.customer[:1])
    total = sum((line.price * line.pieces for line in order.lines), Decimal(0))
    return Invoice(order.customer, order.day, total, await logo.wait(timeout=30))


if __name__ == "__main__":
    asyncio.run(app.worker(queues=["invoices"], concurrency=10).run())
