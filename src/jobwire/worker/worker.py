"""The worker: the object that a user configures, starts and stops."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Never, Self

from jobwire import checks, forking
from jobwire.boundary import Claim, ConsumerSettings, Feature, Strategy
from jobwire.checks import Seconds, maybe_empty, seconds, text, whole, yes_or_no
from jobwire.connection import Connection, resolve
from jobwire.counted import counted
from jobwire.duties import perform
from jobwire.errors import InvalidOption
from jobwire.journal import Journal, new_worker_id
from jobwire.options import Keep, keep_of
from jobwire.rate import Rate, rate_of
from jobwire.worker.engine import Engine
from jobwire.worker.handlers import Executor, Handler, make_runner
from jobwire.worker.keeper import LeaseKeeper
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
from jobwire.worker.shutdown import shut_down, wait_for_first
from jobwire.worker.signals import signals_call
from jobwire.worker.stats import Observer, Stats


class Worker:
    """Runs a handler on the jobs of a queue, beside workers in any language.

    `handler` gets an ActiveJob: a coroutine function runs in the event loop, a plain function in a thread, and with
    executor="process" in a child process. Its return value is the job's result. An exception fails the run, and the
    job's own rules decide whether another attempt follows. Unrecoverable fails the job for good, Snooze puts it off. A
    job may run more than once (a worker can die after the work and before the job is settled), so handlers must be
    idempotent.

    backoff: returns the seconds until a job with a custom backoff runs again, from (failures, job, error). One
    function, or a dict of them by the name of a backoff. lease: the time that a claim lasts unless it is extended,
    which the worker does while it is alive. timeout: the time that a handler may run.
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
        """Makes this a new worker in a forked child: with an id of its own, and not running."""
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
        """The number of jobs that are running now."""
        return len(self._engine.running) if self._engine is not None else 0

    @property
    def claiming(self) -> bool:
        """False once the worker is stopping or has stopped."""
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
        """Adds an observer. Must be called before `run`."""
        self._observers = (*self._observers, observer_of("observer", observer))

    # --- life -------------------------------------------------------------------------------------------------------

    async def run(self, *, signals: bool = True) -> None:
        """Works until `stop` is called or, in the main thread, SIGTERM or SIGINT arrives. A second signal releases the
        running jobs at once."""
        backend = self.connection.backend
        with signals_call(self.interrupt) if signals else contextlib.nullcontext():
            if not await self._reach_store():
                return
        consumer = backend.consumer(self._settings)
        loop = asyncio.get_running_loop()

        def on_lost(claim: Claim) -> None:
            with contextlib.suppress(RuntimeError):  # the event loop has ended, and all of its handlers with it
                loop.call_soon_threadsafe(engine.running.lose, claim)

        keeper = LeaseKeeper(backend, self._settings, on_lost, self.stats, self._journal)
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
                await shut_down(
                    engine=engine,
                    work=work,
                    keeper=keeper,
                    consumer=consumer,
                    runner=self._runner,
                    connection=self.connection if self._owns else None,
                    journal=self._journal,
                )
                watch.stop()
                self._ended.set()
                self._journal.info("stopped: %d completed, %d failed", self.stats.completed, self.stats.failed)

    async def stop(self, *, now: bool = False) -> None:
        """Stops claiming, lets running jobs finish within `shutdown_timeout` and releases the rest. Returns when that
        is done. With `now`, releases all of them at once."""
        self._stop_claiming()
        if now:
            self._now.set()
        if self._engine is not None:
            await self._ended.wait()

    def interrupt(self) -> None:
        """Does what a signal does: the first call stops the worker, the second releases the running jobs at once.
        Returns immediately."""
        if self._stopping.is_set():
            self._now.set()
        self._stop_claiming()

    # --- while it runs ----------------------------------------------------------------------------------------------

    async def pause(self, *, wait: bool = True) -> None:
        """Stops claiming until `resume` is called. Running jobs finish, leases and the protocol's duties go on. With
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
                    await wait_for_first(drained, self._ended)
                finally:
                    drained.cancel()

    def resume(self) -> None:
        """Claims again, at once."""
        if self._paused:
            self._paused = False
            self._journal.info("resumed")
        if self._engine is not None:
            self._engine.resume()

    def cancel(self, job_id: str, reason: str = "", *, retry: bool = False) -> bool:
        """Cancels a job that this worker runs. Returns True if it runs the job, also if that has been cancelled before.
        Returns False if it does not, or if the run is being stopped for another cause: a timeout, a lost lease,
        shutdown.

        A coroutine gets CancelledError, a child process is killed, and a thread has to check `job.cancelled`. If the
        handler returns all the same, the job completes. If it raises an error of its own, that is the job's failure.
        Otherwise the job fails with JobCancelled and the reason: for good, or with `retry` as after any other failure.
        """
        job_id, reason = checks.job_id(job_id), maybe_empty("reason", reason)
        retry = yes_or_no("retry", retry)
        return self._engine is not None and self._engine.running.cancel(job_id, reason, retry=retry)

    # --- start ------------------------------------------------------------------------------------------------------

    async def _reach_store(self) -> bool:
        """Opens the connection, which may wait for the store. Returns False if the worker was stopped meanwhile."""
        opening = asyncio.create_task(self.connection.open(self._wait_for_store))
        try:
            await wait_for_first(opening, self._stopping if self._wait_for_store else None)
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
        # As in a task group: if the worker fails, the block that relies on it is cancelled and raises its error.
        parent, self._parent = self._parent, None
        if background.cancelled() or background.exception() is None or parent is None:
            self._parent = parent
            return
        parent.cancel()

    # --- stopping ---------------------------------------------------------------------------------------------------

    async def _until_done(self, engine: Engine, work: asyncio.Task[None]) -> None:
        await wait_for_first(work, self._stopping)
        if not work.done():
            engine.finish()
            self._journal.info("stopping: %s still running", counted(len(engine.running), "job"))
            await wait_for_first(work, self._now, timeout=self._shutdown_timeout)
        if work.done():
            work.result()

    def _stop_claiming(self) -> None:
        self._stopping.set()
        if self._engine is not None:
            self._engine.finish()
