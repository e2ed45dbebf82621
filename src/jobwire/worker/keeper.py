"""The lease keeper: extends the leases of held jobs from a thread of its own.

It has its own event loop and its own connection, so leases are extended while a handler blocks the worker's loop and
while the worker's connection is busy or broken. It opens that connection only when a lease must be extended, and closes
it when no job is held, so a worker of short jobs never has one. An extension that fails is tried again until it
succeeds. Running jobs go on meanwhile, since an outage that is shorter than the lease does no harm.

One keeper serves all queues of a worker. The leases of different queues are extended at the same time by separate
calls, so that a call that fails for one queue does not delay the others.
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

_EXTEND_AT = 4
"""A lease is extended when a quarter of it has passed, so three extensions may fail before it ends."""
_BRIEFLY = 3.0
"""Seconds that dropping or closing a connection may take."""


class HeldLeases:
    """The claims of one queue whose leases are extended. `on_lost` is called in the keeper's thread for each one that
    is lost."""

    def __init__(
        self, settings: ConsumerSettings, on_lost: Callable[[Claim], None], stats: Stats, journal: Journal
    ) -> None:
        self._settings = settings
        self._on_lost = on_lost
        self._stats = stats
        self._journal = journal
        self._every = settings.lease / _EXTEND_AT
        # Written by the worker's thread, read by the keeper's: single dict operations and list() of a dict are
        # atomic in CPython.
        self._held: dict[Claim, float] = {}
        self._consumer: Consumer | None = None

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, claims: Sequence[Claim], since: float) -> None:
        """Extends the leases of these claims from now on. They began at `since` (monotonic seconds)."""
        for claim in claims:
            self._held[claim] = since

    def let_go(self, claim: Claim) -> None:
        self._held.pop(claim, None)

    def due(self) -> list[Claim]:
        horizon = time.monotonic() - self._every
        return [claim for claim, extended in list(self._held.items()) if extended <= horizon]

    async def extend(self, due: list[Claim], twin: Backend) -> Exception | None:
        """Extends these leases over the keeper's own connection. Returns the error if that fails."""
        now = time.monotonic()
        try:
            async with asyncio.timeout(max(self._every, 1.0)):
                if self._consumer is None:
                    self._consumer = twin.consumer(self._settings)
                lost = set(await self._consumer.extend(due))
        except Exception as error:  # extending must be tried again after any error
            return error
        self._stats.heartbeats += 1
        for claim in due:
            if claim not in self._held:
                continue  # settled while the call was under way, so its lease has rightly ended
            if claim in lost:
                self._held.pop(claim, None)
                self._on_lost(claim)
            else:
                self._held[claim] = now
        return None

    def report(self, error: Exception, due: int, pause: float) -> None:
        """Logs that extending has failed."""
        self._stats.heartbeat_failures += 1
        expected = isinstance(error, (JobwireError, TimeoutError))
        self._journal.warning(
            "could not extend the leases of %s (%s); the handlers go on, trying again in %.1f s",
            counted(due, "job"), str(error) or "no answer in time", pause,
            exc_info=None if expected else error,
        )  # fmt: skip

    async def reset(self) -> None:
        if self._consumer is not None:
            await self._consumer.reset()

    async def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.close()


class LeaseKeeper:
    """Extends the held leases of one worker's queues, in a thread."""

    def __init__(self, backend: Backend, leases: Sequence[HeldLeases], lease: float, worker_id: str) -> None:
        self._backend = backend
        self._leases = leases
        self._every = lease / _EXTEND_AT
        self._twin: Backend | None = None
        self._on_death: Callable[[Exception], object] = lambda _: None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"jobwire-keeper-{worker_id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    async def watch(self) -> None:
        """Raises if the keeper's thread fails, since leases that are not extended would be lost one after the other."""
        loop = asyncio.get_running_loop()
        broken: asyncio.Future[None] = loop.create_future()
        self._on_death = lambda error: loop.call_soon_threadsafe(broken.set_exception, error)
        await broken

    async def stop(self) -> None:
        self._stop.set()
        while self._thread.is_alive():  # in short steps: if the caller is cancelled, no other thread keeps waiting
            await asyncio.to_thread(self._thread.join, 0.1)

    def _run(self) -> None:
        try:
            self._keep()
        except Exception as error:
            self._on_death(error)

    def _keep(self) -> None:
        # One loop for the keeper's whole life, which runs only while there is a lease to extend. In between the
        # thread waits for a plain event, which `stop` can set from any thread.
        with asyncio.Runner() as runner:
            failures = 0
            pause = self._every / 2
            while not self._stop.wait(pause):
                pause = self._every / 2
                due = [(leases, claims) for leases in self._leases if (claims := leases.due())]
                if not due:
                    if self._twin is not None and not any(self._leases):
                        runner.run(_briefly(self._close()))  # opened again for the next extension
                    continue
                errors = runner.run(self._extend(due))
                if not any(errors):
                    failures = 0
                    continue
                failures += 1
                pause = min(reconnect_delay(failures), self._every / 2)
                for (leases, claims), error in zip(due, errors, strict=True):
                    if error is not None:
                        leases.report(error, len(claims), pause)
                        runner.run(_briefly(leases.reset()))
            runner.run(_briefly(self._close()))

    async def _extend(self, due: Sequence[tuple[HeldLeases, list[Claim]]]) -> list[Exception | None]:
        try:
            self._twin = twin = self._twin or self._backend.twin()
            async with asyncio.timeout(max(self._every, 1.0)):
                await twin.open()
        except Exception as error:  # as in HeldLeases.extend
            return [error] * len(due)
        return await asyncio.gather(*(leases.extend(claims, twin) for leases, claims in due))

    async def _close(self) -> None:
        twin, self._twin = self._twin, None
        for leases in self._leases:
            await leases.close()
        if twin is not None:
            await twin.close()


async def _briefly(ending: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(Exception):  # the connection is given up either way
        async with asyncio.timeout(_BRIEFLY):
            await ending
