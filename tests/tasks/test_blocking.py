"""Tasks for blocking code."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from jobwire import App, InvalidOption, JobFailed, State, sync
from tasks.shapes import Line, Order


def test_tasks_are_added_run_and_waited_for_without_await(jobwire_url: str) -> None:
    with sync.App(jobwire_url) as app:

        @app.task(queue="mail", attempts=1)
        def pack(order: Order, bad: bool = False) -> list[Line]:
            job = sync.current_job()
            job.log(f"packing {order.id}")
            assert threading.current_thread() is not threading.main_thread()
            if bad:
                raise ValueError("torn")
            return order.lines

        @app.task(queue="mail")
        async def fetch(url: str) -> int:
            return len(url)

        with app.worker(concurrency=3) as worker:
            job = pack.add(Order(1, [Line("a")]))
            assert job.wait(timeout=30) == [Line("a")]
            assert fetch.options(delay=0.05).add("http://a").wait(30) == 8
            assert [one.wait(30) for one in fetch.add_many([{"url": "a"}, {"url": "bb"}])] == [1, 2]
            with pytest.raises(JobFailed, match="torn"):
                pack.add(Order(2), bad=True).wait(30)
            assert worker.stats.completed == 4
        read: Any = pack.get(job.id)
        assert (read.state, read.result) == (State.COMPLETED, [Line("a")])
        assert app.queue("mail").logs(job.id) == ["packing 1"]
        assert sorted(app.tasks) == ["fetch", "pack"]
        assert pack.__name__ == "pack"
        with pytest.raises(InvalidOption, match="order: must be object, not int"):
            pack.add(5)  # type: ignore[arg-type]


def test_a_worker_runs_until_nothing_is_left(jobwire_url: str) -> None:
    with sync.App(jobwire_url) as app:
        done: list[int] = []

        @app.task
        def note(number: int) -> None:
            done.append(number)

        @app.on_failed
        def failed(job: Any) -> None: ...

        note.add_many([{"number": n} for n in range(5)])
        assert app.worker().run_until_idle(timeout=30) == 5
        assert sorted(done) == [0, 1, 2, 3, 4]
        assert note("8") is None  # type: ignore[arg-type] calling it runs the function itself
        assert done[-1] == "8"


def test_an_app_is_used_in_one_event_loop_after_another(jobwire_url: str) -> None:
    app = App(jobwire_url)

    @app.task
    async def double(number: int) -> int:
        return number * 2

    async def closing() -> int:
        async with app, app.worker():
            return await (await double.add(4)).wait(30)

    assert [asyncio.run(closing()) for _ in range(2)] == [8, 8]


def test_an_app_that_was_not_closed_starts_over_in_the_next_event_loop(jobwire_url: str) -> None:
    """In a process of its own, since what was left open there is noticed when the process ends."""
    done = subprocess.run(
        [sys.executable, "-c", _LEFT_OPEN, jobwire_url], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["8", "10", "3"], "")


_LEFT_OPEN = """
import asyncio, sys
from jobwire import App

app = App(sys.argv[1])

@app.task
async def double(number: int) -> int:
    return number * 2

async def leaving_open(number):
    async with app.worker():
        print(await (await double.add(number)).wait(30))

asyncio.run(leaving_open(4))
asyncio.run(leaving_open(5))
print(asyncio.run(double.add(6)).id)
"""
