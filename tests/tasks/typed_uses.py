"""Uses of tasks for type checkers, which read this file and do not run it.

A line that ends with `# refused` must be an error for pyright and for mypy, and no other line may be one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, assert_type

from jobwire import (
    ActiveJob,
    App,
    Backoff,
    BlockingJob,
    Chain,
    Depends,
    GroupJobs,
    Job,
    Rate,
    Worker,
    by,
    chain,
    chord,
    current_job,
    group,
    previous,
    sync,
)
from jobwire.testing import assert_added, perform, perform_sync
from jobwire.worker import Stats


@dataclass
class Receipt:
    number: int


class Pool: ...


async def open_pool() -> AsyncIterator[Pool]:
    yield Pool()


def settings() -> dict[str, str]:
    return {}


app = App()


@app.task(queue="emails", attempts=3, backoff=Backoff.exponential(1), timeout=30, rate=Rate(100, per=60))
async def send_welcome(to: str, copies: int = 1, db: Pool = Depends(open_pool)) -> Receipt:
    assert_type(db, Pool)
    return Receipt(copies)


@app.task
def render(page: int, options: dict[str, str] = Depends(settings)) -> bytes:
    return b""


@app.task(unique=by("order", for_=60))
async def ship(order: Receipt) -> None: ...


async def producer() -> None:
    job = await send_welcome.add(to="a@example.com")
    assert_type(job, Job[Receipt])
    receipt = await job.wait(timeout=30)
    assert_type(receipt, Receipt)
    assert_type(await send_welcome.options(delay=60, id="w-17").add("b@example.com", copies=2), Job[Receipt])
    assert_type(await send_welcome.add_many([{"to": "a"}]), Sequence[Job[Receipt]])
    assert_type(await send_welcome.get("7"), Job[Receipt] | None)
    assert_type(await send_welcome.wait("7"), Receipt)
    assert_type(await (await render.add(7)).wait(), bytes)
    assert_type(await send_welcome("a", db=Pool()), Receipt)
    assert_type(render(7), bytes)
    await ship.add(Receipt(7))
    await send_welcome.schedule("nightly", cron="0 3 * * *", tz="Europe/Berlin", arguments={"to": "a"})

    await send_welcome.add(too="a")  # refused
    await send_welcome.add(to=5)  # refused
    await send_welcome.add()  # refused
    await send_welcome.add("a", "b")  # refused
    await ship.add("7")  # refused
    await render.add(page="7")  # refused
    send_welcome.options(delya=60)  # refused
    send_welcome.options(attempts="3")  # refused
    wrong: str = await job.wait()  # refused
    assert wrong


@app.task
async def announce(receipt: Receipt, loud: bool = False) -> str:
    return str(receipt.number)


@app.task
async def total(receipts: list[Receipt]) -> int:
    return sum(receipt.number for receipt in receipts)


async def compositions() -> None:
    two = chain(send_welcome.s("a"), announce.s())
    assert_type(two, Chain[str])
    job = await two.add()
    assert_type(job, Job[str])
    assert_type(await job.wait(timeout=3), str)
    assert_type(chain(send_welcome.s("a"), announce.s(loud=True), render.s(previous)), Chain[bytes])
    assert_type(chain(send_welcome.s("a"), announce.s(receipt=previous, loud=True), render.s(page=7)), Chain[bytes])
    assert_type(chain(two, render.s(7)), Chain[bytes])
    jobs = await group(send_welcome.s("a"), send_welcome.s("b")).add()
    assert_type(jobs, GroupJobs[Receipt])
    assert_type(await jobs.wait(3), list[Receipt])
    assert_type(jobs[0], Job[Receipt])
    assert_type(await group(two, announce.s(Receipt(1))).add(), GroupJobs[str])
    assert_type(await chord([send_welcome.s("a"), send_welcome.s("b")], total.s()).add(), Job[int])
    assert_type(await chord(group(send_welcome.s("a"), two), total.s()).add(), Job[int])
    assert_type(chain(group(send_welcome.s("a"), send_welcome.s("b")), total.s(), render.s()), Chain[bytes])

    send_welcome.s(to=5)  # refused
    send_welcome.s("a", copy=2)  # refused
    announce.s(loud=5)  # refused
    chain(send_welcome, announce.s())  # refused
    chain(send_welcome.s("a"), group(announce.s()))  # refused
    group(5)  # refused
    chord(send_welcome.s("a"), total.s())  # refused
    wrong: int = await job.wait()  # refused
    assert wrong


def definitions() -> None:
    @app.task(attempts="3")  # refused
    async def one() -> None: ...

    @app.task(timeuot=3)  # refused
    async def two() -> None: ...


# --- handlers ------------------------------------------------------------------------------------------------------


async def handler(job: ActiveJob[dict[str, int]]) -> int:
    assert_type(job.data, dict[str, int])
    await job.update_progress(50)
    return job.data["n"]


def plain(job: BlockingJob[str]) -> str:
    assert_type(job.data, str)
    job.log("begins")
    return job.data.upper()


def untyped(job: BlockingJob) -> Any:
    return job.data["anything"]


Worker("a", handler)
Worker({"a": handler, "b": plain, "c": untyped}, url="memory:", concurrency=3)


async def wrong_handler(job: ActiveJob[str]) -> int:
    return job.data  # refused


def around() -> str:
    return current_job().name


# --- blocking ------------------------------------------------------------------------------------------------------

blocking = sync.App("memory:")


@blocking.task(queue="reports")
def report(day: int) -> Receipt:
    sync.current_job().log("begins")
    return Receipt(day)


@blocking.task
async def fetch(url: str) -> int:
    return len(url)


@blocking.task
def tell(receipt: Receipt, loud: bool = False) -> str:
    return str(receipt.number)


def blocking_producer() -> None:
    job = report.add(7)
    assert_type(job, sync.Job[Receipt])
    assert_type(job.wait(timeout=3), Receipt)
    assert_type(report.options(delay=3).add(day=7).wait(), Receipt)
    assert_type(fetch.add("u").wait(), int)
    assert_type(report(7), Receipt)
    report.add("7")  # refused
    report.add()  # refused
    number: int = job.wait()  # refused
    assert number
    both = sync.chain(report.s(7), tell.s(loud=True))
    assert_type(both, sync.Chain[str])
    assert_type(both.add(), sync.Job[str])
    assert_type(both.add().wait(3), str)
    assert_type(sync.group(report.s(1), report.s(2)).add().wait(3), list[Receipt])
    assert_type(sync.chord([report.s(1), report.s(2)], tell.s(previous)).add().wait(), str)
    sync.chain(report.s("7"), tell.s())  # refused
    with blocking.worker(concurrency=3) as worker:
        worker.stop()


# --- testing -------------------------------------------------------------------------------------------------------


async def tests() -> None:
    assert_type(await perform(send_welcome, to="a"), Receipt)
    assert_type(await perform(render, 7), bytes)
    assert_type(await perform(send_welcome.s("a"), job_id="7", attempts_made=2, context={"tenant": "acme"}), Receipt)
    assert_type(perform_sync(send_welcome, "a"), Receipt)
    assert_type(perform_sync(report, 7), Receipt)
    async with app.testing(overrides={open_pool: Pool}) as t:
        assert_type(await t.run(until=3600), Stats)
        assert_type(t.added(send_welcome), list[Job[Receipt]])
        t.clock.advance(3600)
    assert_added(send_welcome, count=2, to="a")
    assert_added(report)
    await perform(send_welcome, too="a")  # refused
    await perform(send_welcome.s("a"), jobid="7")  # refused
    perform_sync(report, "7")  # refused
    app.testing(eagre=True)  # refused


def blocking_tests() -> None:
    with blocking.testing(eager=True) as t:
        assert_type(t.added(report), list[sync.Job[Receipt]])
        assert_type(t.run(), Stats)
