"""An app that the tests of `jobwire.testing` test."""

from __future__ import annotations

import datetime as dt
import os
import uuid
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

from jobwire import (
    App,
    Backoff,
    Depends,
    current_job,
)
from tasks.shapes import Line, Order, Plan

# As in a user's program, the tasks are defined once, for a store that no test reaches.
NOWHERE = "bullmq+redis://127.0.0.1:1/0"
app = App(NOWHERE)
tenant: ContextVar[str] = ContextVar("tenant")
seen: list[Any] = []


class Pool:
    def __init__(self, name: str) -> None:
        self.name = name


async def open_pool() -> AsyncIterator[Pool]:
    raise ConnectionError("no test opens the real pool")
    yield Pool("real")


async def fake_pool() -> AsyncIterator[Pool]:
    seen.append("opened")
    yield Pool("fake")
    seen.append("closed")


@app.task
async def ship(order: Order, on: dt.date, plan: Plan = Plan.FREE, number: uuid.UUID | None = None) -> list[Line]:
    assert isinstance(order, Order)
    seen.append((order.id, on, plan, number))
    return [*order.lines, Line("box")]


@app.task
async def count_lines(order: Order) -> int:
    return len(order.lines)


@app.task
async def fail(text: str) -> None:
    raise LookupError(text)


@app.task(attempts=3, backoff=Backoff.fixed(3600))
async def third_time() -> int:
    seen.append(current_job().attempts_made)
    if current_job().attempts_made < 2:
        raise LookupError("not yet")
    return current_job().attempts_made


@app.task
async def use_pool(pool: Pool = Depends(open_pool)) -> str:
    return pool.name


@app.task
async def use_shared_pool(pool: Pool = Depends(open_pool, scope="process")) -> str:
    return pool.name


@app.task
async def parent(number: int) -> None:
    for n in range(number):
        await child.add(n)


@app.task
async def child(n: int) -> None:
    seen.append(n)


@app.task(executor="process")
def process_id() -> int:
    return os.getpid()
