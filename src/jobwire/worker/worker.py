"""The worker: what a user starts, stops and configures."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from jobwire.backend import Claim, ConsumerSettings
from jobwire.connection import Connection, resolve
from jobwire.errors import InvalidOption
from jobwire.model import Job
from jobwire.options import Keep, Seconds, keep_of, seconds, text, whole
from jobwire.worker.duties import perform
from jobwire.worker.engine import Engine
from jobwire.worker.handlers import Executor, Handler, make_runner
from jobwire.worker.journal import Journal
from jobwire.worker.keeper import LockKeeper
from jobwire.worker.outage import Outage
from jobwire.worker.stats import Observer, Stats

Strategy = Callable[[int, Job, BaseException | str], float | None]
_LAST_WORDS = 3.0
"""How long a worker that must leave now still tries to hand its jobs back."""


class Worker:
    """Runs a handler on the jobs of a queue, beside workers in any language.

    `handler` gets an ActiveJob: a coroutine function runs in the event loop, a plain function in a thread, and with
    executor="process" in a child process. What it returns is the job's result; raising retries the job by its own
    rules, raising Unrecoverable fails it, raising Snooze puts it off. A job may run more than once (a worker can die
    after the work and before saying so), so handlers must be idempotent.

    backoff: seconds until a job with a custom backoff runs again, from (failures, job, error); one function, or one per
    name of a backoff. lease: how long a job stays ours without a sign of life. timeout: how long a handler may run.
    rate: (n, seconds) over all workers of the queue. max_reconnect_attempts: 0 never gives up. wait_for_store: how long
    to wait at the start for a store that is not there yet, as when containers start together.
    """

    def __init__(
        self,
        queue: str,
        handler: Handler,
        url: str | Connection | None = None,
        *,
        concurrency: int = 1,
        executor: Executor | None = None,
        timeout: Seconds | None = None,
        lease: Seconds = 30.0,
        recover_every: Seconds = 30.0,
        max_stalled: int = 1,
        rate: tuple[int, Seconds] | None = None,
        backoff: Strategy | Mapping[str, Strategy] | None = None,
        max_backoff: Seconds = 3600.0,
        keep_completed: bool | int | Keep | None = None,
        keep_failed: bool | int | Keep | None = None,
        name: str | None = None,
        worker_id: str | None = None,
        shutdown_timeout: Seconds = 30.0,
        call_timeout: Seconds = 30.0,
        max_reconnect_attempts: int = 0,
        wait_for_store: Seconds = 0.0,
        observers: Sequence[Observer] = (),
        **extra: Any,
    ) -> None:
        self.id = text("worker_id", worker_id) if worker_id is not None else _new_id()
        self.queue = text("queue", queue)
        self.stats = Stats()
        self._concurrency = whole("concurrency", concurrency, minimum=1)
        self._timeout = None if timeout is None else seconds("timeout", timeout, minimum=0.001)
        self._shutdown_timeout = seconds("shutdown_timeout", shutdown_timeout)
        self._call_timeout = seconds("call_timeout", call_timeout, minimum=0.1)
        self._max_reconnects = whole("max_reconnect_attempts", max_reconnect_attempts, minimum=0)
        self._wait_for_store = seconds("wait_for_store", wait_for_store)
        self._observers = observers
        self._runner = make_runner(handler, executor, f"jobwire-{queue}")
        self._settings = ConsumerSettings(
            queue=queue,
            worker_id=self.id,
            name=None if name is None else text("name", name),
            lease=seconds("lease", lease, minimum=0.1),
            recover_every=seconds("recover_every", recover_every, minimum=0.05),
            max_stalled=whole("max_stalled", max_stalled, minimum=0),
            rate=None if rate is None else _rate(rate),
            strategy=backoff if callable(backoff) else None,
            strategies=_strategies(backoff),
            max_backoff=seconds("max_backoff", max_backoff, minimum=0.001),
            keep_completed=None if keep_completed is None else keep_of(keep_completed),
            keep_failed=None if keep_failed is None else keep_of(keep_failed),
            extra=extra,
        )
        self.connection, self._owns = resolve(url)
        if self._settings.rate is not None:
            self.connection.backend.capabilities.require("rate_limit", "rate limits")
        self._journal = Journal(self.id, queue)
        self._outage = Outage(self._journal, self.stats, self._max_reconnects)
        self._engine: Engine | None = None
        self._stopping = asyncio.Event()
        self._now = asyncio.Event()
        self._ended = asyncio.Event()
        self._background: asyncio.Task[None] | None = None
        self._parent: asyncio.Task[Any] | None = None

    def __repr__(self) -> str:
        return f"<Worker {self.id} of {self.queue!r} {self.connection.address.redacted}>"

    @property
    def busy(self) -> int:
        """Jobs that are running now."""
        return self._engine.busy if self._engine is not None else 0

    @property
    def claiming(self) -> bool:
        """False once the worker has been told to stop."""
        return not self._stopping.is_set()

    @property
    def running(self) -> bool:
        """True between the start of `run` and its end."""
        return self._engine is not None and not self._ended.is_set()

    @property
    def connected(self) -> bool:
        """False while the store does not answer."""
        return self.running and self._outage.connected

    def observe(self, observer: Observer) -> None:
        """Have the observer told what happens to jobs; before `run`."""
        self._observers = (*self._observers, observer)

    # --- life -------------------------------------------------------------------------------------------------------

    async def run(self, *, signals: bool = True) -> None:
        """Work until `stop` is called or, in the main thread, SIGTERM or SIGINT arrives (twice: leave at once)."""
        backend = self.connection.backend
        with _signals(self.interrupt) if signals else contextlib.nullcontext():
            if not await self._reach_store():
                return
        consumer = backend.consumer(self._settings)
        loop = asyncio.get_running_loop()

        def on_lost(claim: Claim) -> None:
            _call_in(loop, engine.lose, claim)

        keeper = LockKeeper(backend, self._settings, on_lost, self.stats, self._journal)
        engine = self._engine = Engine(
            backend=backend,
            consumer=consumer,
            runner=self._runner,
            keeper=keeper,
            outage=self._outage,
            stats=self.stats,
            journal=self._journal,
            observers=self._observers,
            concurrency=self._concurrency,
            timeout=self._timeout,
            call_timeout=self._call_timeout,
        )
        duties = [perform(duty, self.stats, self._journal) for duty in consumer.duties()]
        work = asyncio.create_task(engine.run([keeper.watch(), *duties]))
        with _signals(self.interrupt) if signals else contextlib.nullcontext():
            self._journal.info("started on queue %s, concurrency %d", self.queue, self._concurrency)
            keeper.start()
            try:
                await self._until_done(engine, work)
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
                await keeper.stop()
                self._runner.close()
                await consumer.close()
                if self._owns:
                    await self.connection.close()
                self._ended.set()
                self._journal.info("stopped: %d completed, %d failed", self.stats.completed, self.stats.failed)

    async def stop(self, *, now: bool = False) -> None:
        """Claim no more, let running jobs finish within `shutdown_timeout`, hand the rest back; returns when that is
        done. With `now`: hand back at once."""
        self._stop_claiming()
        if now:
            self._now.set()
        if self._engine is not None:
            await self._ended.wait()

    def interrupt(self) -> None:
        """What a signal does: the first stops the worker, the second makes it leave at once. Returns immediately."""
        if self._stopping.is_set():
            self._now.set()
        self._stop_claiming()

    async def _reach_store(self) -> bool:
        """Open the connection, which may wait for the store; False if the worker was told to stop meanwhile."""
        opening = asyncio.create_task(self.connection.open(self._wait_for_store))
        try:
            await _first(opening, self._stopping if self._wait_for_store else None)
        finally:
            opening.cancel()
            await asyncio.wait({opening})
        if opening.cancelled() and self._owns:
            await self.connection.close()
        return not opening.cancelled() and opening.result() is self.connection

    async def __aenter__(self) -> Self:
        await self.connection.open(self._wait_for_store)
        self._parent = asyncio.current_task()
        self._background = asyncio.create_task(self.run(signals=False))
        self._background.add_done_callback(self._on_background_end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        parent, self._parent = self._parent, None
        if self._background is not None:
            await self.stop()
            if parent is None and (task := asyncio.current_task()) is not None:
                task.uncancel()
            await self._background

    def _on_background_end(self, background: asyncio.Task[None]) -> None:
        # As in a task group: if the worker dies, the block that relies on it is cancelled, and leaves with its error.
        parent, self._parent = self._parent, None
        if background.cancelled() or background.exception() is None or parent is None:
            self._parent = parent
            return
        parent.cancel()

    # --- stopping ---------------------------------------------------------------------------------------------------

    async def _until_done(self, engine: Engine, work: asyncio.Task[None]) -> None:
        await _first(work, self._stopping)
        if not work.done():
            engine.finish()
            self._journal.info("stopping: %d jobs are still running", engine.busy)
            await _first(work, self._now, timeout=self._shutdown_timeout)
        if not work.done():
            self._journal.warning("handing %d unfinished jobs back to the queue", engine.busy)
            engine.hand_back()
            await _first(work, timeout=_LAST_WORDS)
        if work.done():
            work.result()
        else:
            ids = ", ".join(engine.unsettled())
            self._journal.error("leaving without a word from the store on jobs %s: they will be recovered", ids)

    def _stop_claiming(self) -> None:
        self._stopping.set()
        if self._engine is not None:
            self._engine.finish()


def _new_id() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


def _strategies(backoff: Strategy | Mapping[str, Strategy] | None) -> Mapping[str, Strategy]:
    if backoff is None or callable(backoff):
        return {}
    for name, strategy in backoff.items():
        if not callable(strategy):
            raise InvalidOption(f"backoff.{name}", strategy, "must be a function of (failures, job, error)")
    return dict(backoff)


def _rate(value: tuple[int, Seconds]) -> tuple[int, float]:
    try:
        count, period = value
    except (TypeError, ValueError):
        raise InvalidOption("rate", value, "must be (jobs, seconds), e.g. (100, 60)") from None
    return whole("rate", count, minimum=1), seconds("rate", period, minimum=0.001)


async def _first(work: asyncio.Task[Any], event: asyncio.Event | None = None, timeout: float | None = None) -> None:
    """Return when the work is done, the event is set, or the time is up."""
    waiting: set[asyncio.Task[Any]] = {work}
    bell = None
    if event is not None:
        bell = asyncio.create_task(event.wait())
        waiting.add(bell)
    try:
        await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if bell is not None:
            bell.cancel()


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and with it everything that could be told
        loop.call_soon_threadsafe(function, *args)


@contextlib.contextmanager
def _signals(on_signal: Callable[[], None]) -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    caught = (signal.SIGTERM, signal.SIGINT)
    for number in caught:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
