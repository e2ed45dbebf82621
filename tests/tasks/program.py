"""An app in a module of its own, as workers in other processes import it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from jobwire import App, Depends, current_job
from tasks.shapes import Line, Order

app = App()


def pid() -> Iterator[int]:
    yield os.getpid()


@app.task(executor="process")
def pack(order: Order, pid: int = Depends(pid)) -> list[Line]:
    job = current_job()
    job.log("packing")  # type: ignore[unused-coroutine]
    return [*order.lines, Line(f"{job.name} in {pid}", 7)]


@app.task(executor="process")
async def fetch(url: str) -> int:
    return len(url)


@app.task(executor="process")
def wrong(number: int) -> int:
    if number == 1:
        return "text"  # type: ignore[return-value]
    raise ValueError("no")


@app.task
async def greet(name: str) -> str:
    return f"hello {name}, from {os.getpid()}"
