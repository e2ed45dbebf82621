"""Runs a demo, from the first job to the report."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

from jobwire.checks import seconds
from jobwire.cli.demo.demo_campaign import DemoCampaign
from jobwire.cli.demo.demo_store import DemoStore
from jobwire.cli.demo.report import Report
from jobwire.cli.demo.snapshot import Snapshot, Watch
from jobwire.errors import InvalidOption

_TICK = 0.2
_FASTEST = 10_000
_FINISH_WITHIN = 45.0
"""Seconds that the workers get for the remaining jobs after the producers have stopped."""
_QUIET_RATE = 3
"""Jobs a second on each protocol while a person looks at the dashboard."""


@dataclass(frozen=True, slots=True)
class Plan:
    seconds: float
    rate: float

    def __post_init__(self) -> None:
        seconds("seconds", self.seconds, minimum=1)
        if not 1 <= self.rate <= _FASTEST:
            raise InvalidOption("rate", self.rate, f"must be 1 to {_FASTEST} jobs a second")


async def run(stores: Sequence[DemoStore], plan: Plan, watch: Watch, campaign: DemoCampaign | None = None) -> Report:
    """Adds jobs for the planned time, lets the workers finish, and returns the report. Ctrl-C and SIGTERM end either
    phase."""
    interrupted = asyncio.Event()
    with _interruptible(interrupted):
        async with AsyncExitStack() as stack:
            for store in stores:
                await stack.enter_async_context(store)
            if campaign is not None:
                await stack.enter_async_context(campaign)
            parts = [*stores, *([] if campaign is None else [campaign])]
            began = time.monotonic()

            async def follow(phase: str, until: float, enough: Callable[[], bool]) -> None:
                while True:
                    await asyncio.gather(*(part.look() for part in parts))
                    elapsed = time.monotonic() - began
                    watch(Snapshot(stores, elapsed, plan.seconds, phase, campaign))
                    if enough() or interrupted.is_set() or elapsed >= until:
                        return
                    await _pause(interrupted, min(_TICK, until - elapsed))

            async with _producing(stores, plan.rate):
                await follow("at work (Ctrl-C ends the demo)", plan.seconds, lambda: False)
            finishing = time.monotonic() - began + _FINISH_WITHIN
            await follow("workers finish what is left", finishing, lambda: all(part.idle for part in parts))
            for part in parts:
                await part.stop_workers()
                await part.look()
            elapsed = time.monotonic() - began
            phase = "interrupted" if interrupted.is_set() else "done"
            watch(Snapshot(stores, elapsed, plan.seconds, phase, campaign))
            return Report.of(stores, elapsed, interrupted.is_set(), campaign)


async def keep_at_work(stores: Sequence[DemoStore]) -> None:
    """Adds a few jobs a second, so that the dashboard has something to show, until Ctrl-C or SIGTERM."""
    interrupted = asyncio.Event()
    with _interruptible(interrupted):
        async with AsyncExitStack() as stack:
            for store in stores:
                await stack.enter_async_context(store)
            async with _producing(stores, _QUIET_RATE):
                await interrupted.wait()


@asynccontextmanager
async def _producing(stores: Sequence[DemoStore], rate: float) -> AsyncGenerator[None]:
    """Adds jobs to all stores while the block runs. The first error, of a producer or of the block, ends both and is
    raised as it is, without the group that it came in."""
    try:
        async with asyncio.TaskGroup() as producers:
            tasks = [producers.create_task(store.produce(rate)) for store in stores]
            yield
            for task in tasks:
                task.cancel()
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _pause(interrupted: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await interrupted.wait()
    except TimeoutError:
        return


@contextmanager
def _interruptible(interrupted: asyncio.Event) -> Generator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
