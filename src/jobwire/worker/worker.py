"""The worker: the object that a user configures, starts and stops."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Never, Self

from jobwire import checks, forking
from jobwire.boundary import ConsumerSettings, Feature, Strategy
from jobwire.checks import Seconds, maybe_empty, seconds, text, whole, yes_or_no
from jobwire.connection import Connection, resolve
from jobwire.counted import counted
from jobwire.errors import InvalidOption, WaitTimeout
from jobwire.journal import new_worker_id
from jobwire.options import Keep
from jobwire.rate import Rate
from jobwire.worker.engines import Engines
from jobwire.worker.handlers import Executor, Handler, MakesRunner
from jobwire.worker.lifetime import Lifespan, Lifetime, Limits
from jobwire.worker.queue_handler import QueueHandler, QueueHandlers, QueueOptions, plans_of
from jobwire.worker.settings import lifespan_of, observer_of, observers_of, refuse_unknown
from jobwire.worker.shutdown import wait_for_first
from jobwire.worker.stats import Observer, Stats


class Worker:
    """Runs a handler on the jobs of a queue, beside workers in any language. A mapping of queues to handlers, or to
    QueueHandlers, makes it a worker of several queues.

    `handler` gets an ActiveJob: a coroutine function runs in the event loop, a plain function in a thread, and with
    executor="process" in a child process. Its return value is the job's result. An exception fails the run, and the
    job's own rules decide whether another attempt follows. Unrecoverable fails the job for good, Snooze puts it off. A
    job may run more than once (a worker can die after the work and before the job is settled), so handlers must be
    idempotent.

    * `concurrency`: how many jobs may run at once, over all queues of the worker.
    * `executor`: "process" runs the handler in child processes.
    * `timeout`: the time that a handler may run.
    * `lease`: the time that a claim lasts unless it is extended, which the worker does while it is alive.
    * `recover_every`: the time between two looks for jobs of dead workers.
    * `max_stalled`: a job whose workers died more often than this fails.
    * `rate`: a limit over all workers of the queue, e.g. `Rate(100, per=60)`.
    * `backoff`: returns the seconds until a job with a custom backoff runs again, from (failures, job, error). One
      function, or a dict of them by the name of a backoff. No wait is longer than `max_backoff`.
    * `keep_completed`, `keep_failed`: which finished jobs stay, for jobs that have no such option of their own.
    * `name`, `worker_id`: how the worker is listed, and the id of its claims. Both are made up if not given.
    * `shutdown_timeout`: the time that running jobs have to finish when the worker stops.
    * `call_timeout`: a call to the store without an answer for this long counts as an outage.
    * `max_reconnect_attempts`: 0 never gives up.
    * `wait_for_store`: how long to wait at the start for a store that is not there yet, as when containers start
      together.
    * `lifespan`: an async context manager function, entered before the first claim and left after the last job is
      settled.
    * `observers`: are called when a job starts and when it is settled.
    * `native`: options that only the queue's protocol has, e.g. `jobwire.native.BridgeMQWorker(stack="python")`.
    """

    def __init__(
        self,
        queue: str | QueueHandlers,
        handler: Handler | MakesRunner | QueueHandler | None = None,
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
        lifespan: Lifespan | None = None,
        observers: Sequence[Observer] = (),
        native: object | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, Worker.__init__)
        self.id = text("worker_id", worker_id) if worker_id is not None else new_worker_id()
        self.has_given_id = worker_id is not None
        self._limits = Limits(
            concurrency=whole("concurrency", concurrency, minimum=1),
            shutdown_timeout=seconds("shutdown_timeout", shutdown_timeout),
            call_timeout=seconds("call_timeout", call_timeout, minimum=0.1),
            max_reconnects=whole("max_reconnect_attempts", max_reconnect_attempts, minimum=0),
            wait_for_store=seconds("wait_for_store", wait_for_store),
        )
        self._lifespan: Lifespan = lifespan_of(lifespan)
        self._observers = observers_of(observers)
        common = ConsumerSettings(
            queue="",
            worker_id=self.id,
            name=None if name is None else text("name", name),
            lease=seconds("lease", lease, minimum=0.1),
            recover_every=seconds("recover_every", recover_every, minimum=0.05),
            max_stalled=whole("max_stalled", max_stalled, minimum=0),
            max_backoff=seconds("max_backoff", max_backoff, minimum=0.001),
        )
        options = QueueOptions(
            concurrency=concurrency,
            executor=executor,
            timeout=timeout,
            rate=rate,
            backoff=backoff,
            keep_completed=keep_completed,
            keep_failed=keep_failed,
            native=native,
        )
        self._plans = plans_of(queue, handler, options, common)
        self.connection, self._owns = resolve(url)
        for plan in self._plans.values():
            if plan.settings.rate is not None:
                self.connection.backend.capabilities.require(Feature.RATE_LIMIT)
            self.connection.backend.check_worker(plan.settings)
        self._paused: set[str] = set()
        self._stats = {name: Stats() for name in self._plans}
        self._start_over()
        forking.follow(self, Worker._after_fork)

    def _after_fork(self) -> None:
        """Makes this a new worker in a forked child: with an id of its own, and not running."""
        if not self.has_given_id:
            self.id = new_worker_id()
            for queue, plan in self._plans.items():
                self._plans[queue] = replace(plan, settings=replace(plan.settings, worker_id=self.id))
        self._stats = {name: Stats() for name in self._plans}
        self._start_over()

    def _start_over(self) -> None:
        self._life = Lifetime(
            self.id,
            self._plans,
            self._stats,
            self.connection,
            owns_connection=self._owns,
            lifespan=self._lifespan,
            limits=self._limits,
        )
        self._background: asyncio.Task[None] | None = None
        self._parent: asyncio.Task[Any] | None = None

    def __repr__(self) -> str:
        return f"<Worker {self.id} of {', '.join(map(repr, self._plans))} {self.connection.address.redacted}>"

    @property
    def queue(self) -> str:
        """The name of the worker's queue, if it has one queue only."""
        if len(self._plans) > 1:
            raise AttributeError("a worker of several queues has no `queue`: see `queues`")
        return next(iter(self._plans))

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of all queues of the worker."""
        return tuple(self._plans)

    @property
    def stats(self) -> Stats:
        """Counts of the work so far, over all queues."""
        if len(self._stats) == 1:
            return next(iter(self._stats.values()))
        return Stats.total(self._stats.values())

    def stats_of(self, queue: str) -> Stats:
        """Returns the counts of one queue."""
        [queue] = self._chosen(queue)
        return self._stats[queue]

    @property
    def busy(self) -> int:
        """The number of jobs that are running now."""
        return self._life.engines.busy if self._life.engines is not None else 0

    @property
    def claiming(self) -> bool:
        """False once the worker is stopping or has stopped."""
        return not self._life.stopping.is_set()

    @property
    def paused(self) -> bool:
        """True between `pause` and `resume`. With several queues: True if all of them are paused."""
        return len(self._paused) == len(self._plans)

    @property
    def running(self) -> bool:
        """True between the start of `run` and its end."""
        return self._life.engines is not None and not self._life.ended.is_set()

    @property
    def started(self) -> bool:
        """True once the store has answered a claim from each queue that is not paused."""
        return self.running and all(self._stats[queue].calls for queue in self._plans if queue not in self._paused)

    @property
    def connected(self) -> bool:
        """False while the store does not answer."""
        return self._life.engines is not None and self.running and self._life.engines.connected

    def observe(self, observer: Observer) -> None:
        """Adds an observer. Must be called before `run`."""
        self._observers = (*self._observers, observer_of("observer", observer))

    # --- life -------------------------------------------------------------------------------------------------------

    async def run(self, *, signals: bool = True) -> None:
        """Works until `stop` is called or, in the main thread, SIGTERM or SIGINT arrives. A second signal releases the
        running jobs at once."""
        await self._life.run(self._observers, self._paused, signals=signals)

    async def run_until_idle(self, timeout: Seconds | None = None, *, signals: bool = True) -> int:
        """Works until no job is ready in any of the queues and none runs, then stops as `run` does. Returns the number
        of jobs that were settled. Does not wait for jobs that are due later, such as next attempts after a backoff.

        If there are still jobs after `timeout`, it stops too, and raises WaitTimeout. May be called again afterwards.
        """
        within = None if timeout is None else seconds("timeout", timeout)
        before = self.stats.settled
        ends: list[bool] = []  # whether it was idle in the end; empty if it was stopped before

        async def stop_when_idle(engines: Engines) -> None:
            try:
                async with asyncio.timeout(within):
                    await engines.idle()
                ends.append(True)
            except TimeoutError:
                ends.append(False)
            self._life.stop_claiming()

        await self._life.run(self._observers, self._paused, signals=signals, beside=stop_when_idle)
        settled = self.stats.settled - before
        if ends:
            self._start_over()
        if ends == [False]:
            raise WaitTimeout(f"there were still jobs after {within:g} s ({counted(settled, 'job')} settled)")
        return settled

    async def stop(self, *, now: bool = False) -> None:
        """Stops claiming, lets running jobs finish within `shutdown_timeout` and releases the rest. Returns when that
        is done. With `now`, releases all of them at once."""
        await self._life.stop(now=now)

    def interrupt(self) -> None:
        """Does what a signal does: the first call stops the worker, the second releases the running jobs at once.
        Returns immediately."""
        self._life.interrupt()

    # --- while it runs ----------------------------------------------------------------------------------------------

    async def pause(self, *, wait: bool = True, queue: str | None = None) -> None:
        """Stops claiming until `resume` is called. Running jobs finish, leases and the protocol's duties go on. With
        `wait`, returns when the running jobs have been settled, or when `resume` or the worker's end comes first. With
        `queue`, pauses only this queue of the worker.

        Only this worker pauses, and nothing is stored: `queue.admin.pause` pauses the queue for all of its workers. A
        worker that is paused before `run` starts paused.
        """
        engines, wait, queues = self._life.engines, yes_or_no("wait", wait), self._chosen(queue)
        task = asyncio.current_task()
        claim = engines.claim_of(task) if engines is not None and task is not None else None
        if wait and claim is not None and claim.job.queue in queues:
            raise waits_for_itself()
        if not self._paused.issuperset(queues):
            self._paused.update(queues)
            what = "paused" if queue is None else f"paused queue {queue}"
            busy = 0 if engines is None else sum(engines.busy_on(one) for one in queues)
            self._life.journal.info("%s: %s still running", what, counted(busy, "job"))
        if engines is not None:
            engines.pause(queues)
            if wait:
                drained = asyncio.create_task(engines.drained(queues))
                try:
                    await wait_for_first(drained, self._life.ended)
                finally:
                    drained.cancel()

    def resume(self, *, queue: str | None = None) -> None:
        """Claims again, at once. With `queue`, only from this queue."""
        queues = self._chosen(queue)
        if not self._paused.isdisjoint(queues):
            self._paused.difference_update(queues)
            self._life.journal.info("resumed" if queue is None else f"resumed queue {queue}")
        if self._life.engines is not None:
            self._life.engines.resume(queues)

    def cancel(self, job_id: str, reason: str = "", *, retry: bool = False, queue: str | None = None) -> bool:
        """Cancels a job that this worker runs. Returns True if it runs the job, also if that has been cancelled before.
        Returns False if it does not, or if the run is being stopped for another cause: a timeout, a lost lease,
        shutdown. Jobs of different queues may have the same id: `queue` names the one that is meant.

        A coroutine gets CancelledError, a child process is killed, and a thread has to check `job.cancelled`. If the
        handler returns all the same, the job completes. If it raises an error of its own, that is the job's failure.
        Otherwise the job fails with JobCancelled and the reason: for good, or with `retry` as after any other failure.
        """
        job_id, reason = checks.job_id(job_id), maybe_empty("reason", reason)
        retry, queues = yes_or_no("retry", retry), self._chosen(queue)
        engines = self._life.engines
        return engines is not None and engines.cancel(queues, job_id, reason, retry=retry)

    def _chosen(self, queue: str | None) -> Collection[str]:
        """Returns the queues that an argument means: all of them, or the named one."""
        if queue is None:
            return self.queues
        if queue not in self._plans:
            raise InvalidOption("queue", queue, f"must be a queue of this worker: {', '.join(self._plans)}")
        return (queue,)

    # --- in the background ------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.connection.open(self._limits.wait_for_store)
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

    @property
    def runs_here(self) -> bool:
        """True in a thread that runs a handler of this worker."""
        engines = self._life.engines
        return engines is not None and any(runner.runs_here() for runner in engines.runners.values())


def waits_for_itself() -> InvalidOption:
    """Returns the error for a handler that pauses its own worker and waits for the end of all running jobs."""
    return InvalidOption("wait", True, "must be False in a handler of this worker, which would wait for itself")
