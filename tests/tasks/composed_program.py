"""Tasks that run in child processes, which import this file."""

from __future__ import annotations

from jobwire import App

app = App("memory:composed_in_processes")


@app.task(executor="process")
def double(number: int) -> int:
    return 2 * number


@app.task(executor="process")
def add(a: int, b: int) -> int:
    return a + b


@app.task(executor="process")
async def total(numbers: list[int]) -> int:
    return sum(numbers)
