"""The lock keeper: renews the leases of held jobs from a thread of its own.

It has its own event loop and its own connection, so leases are renewed while a handler blocks the worker's loop and
while the worker's connection is busy or broken. It opens that connection only when a lease needs renewing, and closes
it when no job is held: a worker of short jobs never has one. A failed renewal is tried again until it succeeds;
running jobs go on meanwhile, since an outage shorter than the lease harms nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from jobwire.backoff import reconnect_delay
from jobwire.boundary import Backend, Claim, Consumer, ConsumerSettings
from jobwire.counted import counted
from jobwire.errors import JobwireError
from jobwire.journal import Journal
from jobwire.worker.stats import Stats

_RENEW_PART = 4
"""A lease is renewed when a quarter of it has passed, so three renewals may fail before it ends."""


_BRIEFLY = 3.0
"""How long dropping or closing a connection may take, in seconds."""


class LockKeeper:
    """Knows the claims that are held and keeps them so. `on_lost` is called in the keeper's thread."""

    def __init__(
        self,
        backend: Backend,
        settings: ConsumerSettings,
        on_lost: Callable[[Claim], None],
        stats: Stats,
        journal: Journal,
    ) -> None:
        self._backend = backend
        self._settings = settings
        self._on_lost = on_lost
        self._stats = stats
        self._journal = journal
        self._every = settings.lease / _RENEW_PART
        # Written by the worker's thread, read by the keeper's: single dict operations and list() of a dict are
        # atomic in CPython.
        self._held: dict[Claim, float] = {}
        self._twin: Backend | None = None
        self._consumer: Consumer | None = None
        self._on_death: Callable[[Exception], object] = lambda _: None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"jobwire-keeper-{settings.worker_id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def hold(self, claims: Sequence[Claim], since: float) -> None:
        """Keep these claims, leased at `since` (monotonic seconds)."""
        for claim in claims:
            self._held[claim] = since

    def let_go(self, claim: Claim) -> None:
        self._held.pop(claim, None)

    def holds(self, claim: Claim) -> bool:
        return claim in self._held

    async def watch(self) -> None:
        """Raise if the keeper's thread dies: unrenewed leases would be lost one after the other."""
        loop = asyncio.get_running_loop()
        broken: asyncio.Future[None] = loop.create_future()
        self._on_death = lambda error: loop.call_soon_threadsafe(broken.set_exception, error)
        await broken

    async def stop(self) -> None:
        self._stop.set()
        while self._thread.is_alive():  # joined bit by bit: a caller who is cancelled leaves no other thread waiting
            await asyncio.to_thread(self._thread.join, 0.1)

    def _run(self) -> None:
        try:
            self._keep()
        except Exception as error:
            self._on_death(error)

    def _keep(self) -> None:
        # One loop for the keeper's whole life, entered only while there is something to renew: between beats the
        # thread sleeps on a plain event that `stop` can set from anywhere.
        with asyncio.Runner() as runner:
            failures = 0
            pause = self._every / 2
            while not self._stop.wait(pause):
                pause = self._every / 2
                due = self._due()
                if not due:
                    if not self._held and self._twin is not None:
                        runner.run(_briefly(self._close()))  # opened again when a lease needs it
                    continue
                try:
                    runner.run(self._renew(due))
                    failures = 0
                except Exception as error:  # whatever it is, the leases must be tried again
                    failures += 1
                    pause = min(reconnect_delay(failures), self._every / 2)
                    self._stats.heartbeat_failures += 1
                    self._report(error, len(due), pause)
                    runner.run(_briefly(self._reset()))
            runner.run(_briefly(self._close()))

    def _report(self, error: Exception, due: int, pause: float) -> None:
        expected = isinstance(error, (JobwireError, TimeoutError))
        self._journal.warning(
            "could not extend the leases of %s (%s); the handlers go on, trying again in %.1f s",
            counted(due, "job"), str(error) or "no answer in time", pause,
            exc_info=None if expected else error,
        )  # fmt: skip

    def _due(self) -> list[Claim]:
        horizon = time.monotonic() - self._every
        return [claim for claim, renewed in list(self._held.items()) if renewed <= horizon]

    async def _renew(self, due: list[Claim]) -> None:
        now = time.monotonic()
        async with asyncio.timeout(max(self._every, 1.0)):
            lost = set(await (await self._open()).extend(due))
        self._stats.heartbeats += 1
        for claim in due:
            if claim not in self._held:
                continue  # settled while the call was under way, so its lock is rightly gone
            if claim in lost:
                self._held.pop(claim, None)
                self._on_lost(claim)
            else:
                self._held[claim] = now

    async def _open(self) -> Consumer:
        if self._twin is None:
            self._twin = self._backend.twin()
        await self._twin.open()
        if self._consumer is None:
            self._consumer = self._twin.consumer(self._settings)
        return self._consumer

    async def _reset(self) -> None:
        if self._consumer is not None:
            await self._consumer.reset()

    async def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        twin, self._twin = self._twin, None
        if consumer is not None:
            await consumer.close()
        if twin is not None:
            await twin.close()


async def _briefly(ending: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(Exception):  # the connection is given up either way
        async with asyncio.timeout(_BRIEFLY):
            await ending
