"""The worker: what a user starts, stops and configures."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Never, Self

from jobwire import forking, options
from jobwire.boundary import Claim, Consumer, ConsumerSettings, Feature, Strategy
from jobwire.connection import Connection, resolve
from jobwire.counted import counted
from jobwire.duties import perform
from jobwire.errors import InvalidOption
from jobwire.journal import Journal, few, new_worker_id
from jobwire.options import Keep, Seconds, keep_of, maybe_empty, seconds, text, whole, yes_or_no
from jobwire.rate import Rate, rate_of
from jobwire.worker.engine import Engine
from jobwire.worker.handlers import Executor, Handler, make_runner
from jobwire.worker.keeper import LockKeeper
from jobwire.worker.loop_watch import LoopWatch
from jobwire.worker.observers import Observers
from jobwire.worker.outage import Outage
from jobwire.worker.processes import worker_stopping
from jobwire.worker.settings import (
    observer_of,
    observers_of,
    refuse_unknown,
    strategies_of,
    strategy_of,
)
from jobwire.worker.signals import signals_call
from jobwire.worker.stats import Observer, Stats

_LAST_CALLS = 3.0
"""How long each step of leaving may take: handing jobs back, the end of cancelled handlers, closing a connection."""


class Worker:
    """Runs a handler on the jobs of a queue, beside workers in any language.

    `handler` gets an ActiveJob: a coroutine function runs in the event loop, a plain function in a thread, and with
    executor="process" in a child process. What it returns is the job's result; raising retries the job by its own
    rules, raising Unrecoverable fails it, raising Snooze puts it off. A job may run more than once (a worker can die
    after the work and before saying so), so handlers must be idempotent.

    backoff: seconds until a job with a custom backoff runs again, from (failures, job, error); one function, or one per
    name of a backoff. lease: how long a job stays ours without a sign of life. timeout: how long a handler may run.
    rate: a limit over all workers of the queue, e.g. Rate(100, per=60). max_reconnect_attempts: 0 never gives up.
    wait_for_store: how long to wait at the start for a store that is not there yet, as when containers start together.
    native: options that only the queue's protocol has, e.g. jobwire.native.BridgeMQWorker(stack="python").
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
        rate: Rate | None = None,
        backoff: Strategy | Mapping[str, Strategy] | None = None,
        max_backoff: Seconds = 3600.0,
        keep_completed: int | Keep | None = None,
        keep_failed: int | Keep | None = None,
        name: str | None = None,
        worker_id: str | None = None,
        shutdown_timeout: Seconds = 30.0,
        call_timeout: Seconds = 30.0,
        max_reconnect_attempts: int = 0,
        wait_for_store: Seconds = 0.0,
        observers: Sequence[Observer] = (),
        native: object | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, Worker.__init__)
        self.id = text("worker_id", worker_id) if worker_id is not None else new_worker_id()
        self.queue = text("queue", queue)
        self.stats = Stats()
        self._paused = False
        self._concurrency = whole("concurrency", concurrency, minimum=1)
        self._timeout = None if timeout is None else seconds("timeout", timeout, minimum=0.001)
        self._shutdown_timeout = seconds("shutdown_timeout", shutdown_timeout)
        self._call_timeout = seconds("call_timeout", call_timeout, minimum=0.1)
        self._max_reconnects = whole("max_reconnect_attempts", max_reconnect_attempts, minimum=0)
        self._wait_for_store = seconds("wait_for_store", wait_for_store)
        self._observers = observers_of(observers)
        self._make_runner = partial(make_runner, handler, executor, f"jobwire-{queue}")
        self._runner = self._make_runner()
        self._settings = ConsumerSettings(
            queue=queue,
            worker_id=self.id,
            name=None if name is None else text("name", name),
            lease=seconds("lease", lease, minimum=0.1),
            recover_every=seconds("recover_every", recover_every, minimum=0.05),
            max_stalled=whole("max_stalled", max_stalled, minimum=0),
            timeout=self._timeout,
            rate=rate_of("rate", rate),
            strategy=strategy_of(backoff),
            strategies=strategies_of(backoff),
            max_backoff=seconds("max_backoff", max_backoff, minimum=0.001),
            keep_completed=None if keep_completed is None else keep_of(keep_completed, "keep_completed"),
            keep_failed=None if keep_failed is None else keep_of(keep_failed, "keep_failed"),
            native=native,
        )
        self.connection, self._owns = resolve(url)
        if self._settings.rate is not None:
            self.connection.backend.capabilities.require(Feature.RATE_LIMIT)
        self.connection.backend.check_worker(self._settings)
        self._has_given_id = worker_id is not None
        self._start_over()
        forking.follow(self, Worker._after_fork)

    def _after_fork(self) -> None:
        """In a forked child: a worker of its own, whose id no other has and which does not run yet."""
        if not self._has_given_id:
            self.id = new_worker_id()
            self._settings = replace(self._settings, worker_id=self.id)
        self.stats = Stats()
        self._runner = self._make_runner()
        self._start_over()

    def _start_over(self) -> None:
        self._journal = Journal(self.id, self.queue)
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
        return len(self._engine.running) if self._engine is not None else 0

    @property
    def claiming(self) -> bool:
        """False once the worker has been told to stop."""
        return not self._stopping.is_set()

    @property
    def paused(self) -> bool:
        """True between `pause` and `resume`."""
        return self._paused

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
        self._observers = (*self._observers, observer_of("observer", observer))

    # --- life -------------------------------------------------------------------------------------------------------

    async def run(self, *, signals: bool = True) -> None:
        """Work until `stop` is called or, in the main thread, SIGTERM or SIGINT arrives (twice: leave at once)."""
        backend = self.connection.backend
        with signals_call(self.interrupt) if signals else contextlib.nullcontext():
            if not await self._reach_store():
                return
        consumer = backend.consumer(self._settings)
        loop = asyncio.get_running_loop()

        def on_lost(claim: Claim) -> None:
            _call_in(loop, engine.running.lose, claim)

        keeper = LockKeeper(backend, self._settings, on_lost, self.stats, self._journal)
        engine = self._engine = Engine(
            backend=backend,
            consumer=consumer,
            runner=self._runner,
            keeper=keeper,
            outage=self._outage,
            stats=self.stats,
            journal=self._journal,
            observers=Observers(self._observers, self._journal),
            concurrency=self._concurrency,
            timeout=self._timeout,
            call_timeout=self._call_timeout,
            paused=self._paused,
        )
        watch = LoopWatch(self._journal, engine.running.claim_of)
        duties = [perform(duty, self._journal, self._call_timeout, self.stats.count_duty) for duty in consumer.duties()]
        token = worker_stopping.set(self._stopping.is_set)
        work = asyncio.create_task(engine.run([keeper.watch(), *duties]))
        worker_stopping.reset(token)
        with signals_call(self.interrupt) if signals else contextlib.nullcontext():
            self._journal.info("started on queue %s, concurrency %d", self.queue, self._concurrency)
            keeper.start()
            watch.start()
            try:
                await self._until_done(engine, work)
            finally:
                await self._leave(engine, work, keeper, consumer)
                watch.stop()
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

    # --- while it runs ----------------------------------------------------------------------------------------------

    async def pause(self, *, wait: bool = True) -> None:
        """Claim no more until `resume` is called; running jobs finish, and leases and the protocol's duties go on. With
        `wait`, returns when the running jobs have been settled, or when `resume` or the worker's end comes first.

        Only this worker pauses, and nothing is stored: `queue.admin.pause` pauses the queue for all of its workers. A
        worker that is paused before `run` starts paused.
        """
        engine, wait = self._engine, yes_or_no("wait", wait)
        task = asyncio.current_task()
        if wait and engine is not None and task is not None and engine.running.claim_of(task) is not None:
            raise InvalidOption("wait", wait, "must be False in a handler of this worker, which would wait for itself")
        if not self._paused:
            self._paused = True
            self._journal.info("paused: %s still running", counted(self.busy, "job"))
        if engine is not None:
            engine.pause()
            if wait:
                drained = asyncio.create_task(engine.drained())
                try:
                    await _first(drained, self._ended)
                finally:
                    drained.cancel()

    def resume(self) -> None:
        """Claim again, at once."""
        if self._paused:
            self._paused = False
            self._journal.info("resumed")
        if self._engine is not None:
            self._engine.resume()

    def cancel(self, job_id: str, reason: str = "", *, retry: bool = False) -> bool:
        """Cancel a job that this worker runs. Returns True if it does, also if the job has been cancelled before; False
        if it does not, or if the run is being stopped for another cause: a timeout, a lost lease, shutdown.

        A coroutine gets CancelledError, a child process is killed, and a thread has to look at `job.cancelled`. If the
        handler returns all the same the job completes, and if it raises an error of its own that is its failure.
        Otherwise it fails with JobCancelled and the reason: for good, or with `retry` as after any other failure.
        """
        job_id, reason = options.job_id(job_id), maybe_empty("reason", reason)
        retry = yes_or_no("retry", retry)
        return self._engine is not None and self._engine.running.cancel(job_id, reason, retry=retry)

    # --- start ------------------------------------------------------------------------------------------------------

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
            self._journal.info("stopping: %s still running", counted(len(engine.running), "job"))
            await _first(work, self._now, timeout=self._shutdown_timeout)
        if work.done():
            work.result()

    async def _leave(self, engine: Engine, work: asyncio.Task[None], keeper: LockKeeper, consumer: Consumer) -> None:
        """End everything, however the run ended: unfinished jobs are handed back if the store takes them, and no
        handler goes on without a lease. Each step has a limit, so that a store that is away can't hold up the end."""
        if not work.done():
            if engine.running:
                self._journal.warning("handing %s back to the queue unfinished", counted(len(engine.running), "job"))
            engine.hand_back()
            await _first(work, timeout=_LAST_CALLS)
        if unsettled := engine.unsettled():
            self._journal.error(
                "shutting down without confirmation for %s (%s): recovered when their leases expire",
                counted(len(unsettled), "job"), few(unsettled, most=100),
            )  # fmt: skip
        await engine.running.leave(_LAST_CALLS if work.done() else 0.0)
        work.cancel()
        await asyncio.wait([work], timeout=_LAST_CALLS + 1.0)
        self._runner.close()
        await self._end("the lease keeper", keeper.stop())
        await self._end("the consumer", consumer.close())
        if self._owns:
            await self._end("the connection", self.connection.close())

    async def _end(self, what: str, ending: Coroutine[Any, Any, None]) -> None:
        try:
            async with asyncio.timeout(_LAST_CALLS):
                await ending
        except Exception as error:
            reason = str(error) or type(error).__name__
            self._journal.warning("could not close %s (%s); going on without", what, reason)

    def _stop_claiming(self) -> None:
        self._stopping.set()
        if self._engine is not None:
            self._engine.finish()


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
