"""The jobs that run now: each in a task of its own, from its claim to its outcome.

A run ends when its handler returns or raises. The worker can end it too: at its timeout, when its lease is lost, at
shutdown, and when it is asked to cancel the job. It then cancels the handler's task. A handler that ignores this is
abandoned after a while: it goes on, since Python can't stop it, but the worker stops waiting for it, frees its slot,
and logs that.

The end of a cancelled handler still counts: its result completes the job, and its own error is the failure. Otherwise
the first cause decides. A timed-out or cancelled job fails, and a job that is stopped at shutdown is released.

A thread can't be interrupted. At its timeout it is abandoned at once. When its job is cancelled, the run goes on until
the handler checks `job.cancelled`, or ends as it would have anyway.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from jobwire import forking
from jobwire.boundary import Backend, Claim, Failed, Outcome, Released
from jobwire.errors import HandlerTimeout, JobCancelled
from jobwire.journal import Journal, fields_of
from jobwire.worker.abandoning import forget
from jobwire.worker.active import ActiveJob, Leases
from jobwire.worker.handler_tasks import maker, task_maker
from jobwire.worker.handlers import Runner, failure, run_job

_CLEAN_UP = 5.0
"""Seconds that a cancelled handler may go on before it is abandoned."""
_NOT_SHOWN = "the handler raised an exception that can't be shown"


class Run:
    """One run of a job."""

    __slots__ = ("_runs", "abandoned", "began", "cause", "claim", "final", "job", "task", "timer")

    def __init__(self, claim: Claim, job: ActiveJob, runs: RunningJobs) -> None:
        self._runs = runs
        self.claim = claim
        self.job = job
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.cause: HandlerTimeout | JobCancelled | None = None
        """The error of a run that the worker has stopped. None: its job is released."""
        self.final = False
        """True if the cause fails the job for good."""
        self.abandoned = False
        self.began = time.monotonic()

    def begin(self) -> None:
        """Starts the run's timeout."""
        self.began = time.monotonic()
        timeout = self.claim.timeout if self.claim.timeout is not None else self._runs.timeout
        if timeout is not None:
            self.timer = asyncio.get_running_loop().call_later(timeout, self._runs.time_out, self, timeout)

    @property
    def is_stopped(self) -> bool:
        """True if the worker has stopped the run, or is being cancelled itself."""
        return self.job.cancelled or self._runs.worker_is_cancelled()

    def made(self, task: asyncio.Task[Any]) -> None:
        """Registers a task that the handler has made."""
        self._runs.made[task] = self
        task.add_done_callback(self._runs.made.pop)

    def stopped(self, cancelled: BaseException | None) -> Outcome:
        """Returns the outcome of a run that the worker has stopped."""
        if self.cause is None:
            return Released(self.claim)
        self.cause.__cause__ = cancelled  # its traceback shows where the handler was stopped
        return failure(self.claim, self.cause, self._runs.journal, final=self.final)


class RunningJobs:
    """Starts and stops runs. Calls `on_end` with the outcome of each."""

    def __init__(
        self,
        *,
        backend: Backend,
        runner: Runner,
        leases: Leases,
        journal: Journal,
        timeout: float | None,
        on_end: Callable[[Outcome], None],
        worker_is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._backend = backend
        self._runner = runner
        self._leases = leases
        self.journal = journal
        self.timeout = timeout
        self._on_end = on_end
        self.worker_is_cancelled = worker_is_cancelled
        self._new_task = self._first_task
        self._runs: dict[Claim, Run] = {}
        self.made: dict[asyncio.Task[Any], Run] = {}
        """The tasks that handlers have made and that still run."""
        forking.follow(self, RunningJobs._after_fork)

    def _after_fork(self) -> None:
        """Ends a forked process as soon as a handler returns in it: it is the copy of a handler that has forked."""

        def leave(outcome: Outcome) -> None:
            forking.leave_if_forked(0, f"the handler of job {outcome.claim.job.id}")

        self._on_end = leave

    def __len__(self) -> int:
        return len(self._runs)

    def ids(self) -> list[str]:
        return [claim.job.id for claim in self._runs]

    def claim_of(self, task: asyncio.Task[Any]) -> Claim | None:
        """Returns the claim whose handler runs in the task, or has made it. May be called from any thread."""
        run = self.made.get(task) or next((run for run in list(self._runs.values()) if run.task is task), None)
        return None if run is None else run.claim

    def start(self, claim: Claim) -> None:
        run = self._runs[claim] = Run(claim, ActiveJob(claim, self._backend, self._leases), self)
        run.task = self._new_task(self._run(run))

    def _first_task(self, running: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Makes the first task, and leaves the others to the quickest function for that in this event loop."""
        self._new_task = task_maker()
        return self._new_task(running)

    def lose(self, claim: Claim) -> None:
        """Stops the run of a job whose lease is lost."""
        run = self._runs.get(claim)
        if run is not None:
            self.journal.warning(
                "lost the lease of job %s: stopping its handler, another worker may run the job",
                claim.job.id,
                extra=fields_of(claim, final=False),
            )
            run.job.mark_lost()
            self._cancel(run)

    def cancel(self, job_id: str, reason: str, *, retry: bool) -> bool:
        """Stops the run of a job, which fails unless its handler decides otherwise. Returns False if no run of this job
        can be cancelled: there is none, or it is being stopped for another cause."""
        runs = [run for run in self._runs.values() if run.claim.job.id == job_id]
        for run in runs:
            if not run.job.cancelled:
                self._cancel(run, JobCancelled(reason), final=not retry, interrupt=self._runner.can_interrupt(run.job))
        return any(isinstance(run.cause, JobCancelled) for run in runs)

    def cancel_all(self) -> None:
        """Stops every run. The jobs are released."""
        for run in list(self._runs.values()):
            self._cancel(run)

    async def leave(self, within: float) -> None:
        """Stops every run, waits up to `within` seconds for the handlers to end, and abandons the others. Their jobs
        are recovered when their leases expire, since the handlers may still be working until then."""
        self.cancel_all()
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=within)
        for run in list(self._runs.values()):
            self._abandon(run)

    # --- one run ----------------------------------------------------------------------------------------------------

    async def _run(self, run: Run) -> None:
        maker.set(run)
        try:
            outcome = await run_job(self._runner, run, self.journal)
        except GeneratorExit as error:
            if run.abandoned or run.task is None or not run.task.get_loop().is_running():
                raise  # not the handler's: Python is destroying the coroutine
            outcome = failure(run.claim, error, self.journal)
        except BaseException:
            # The handler's exception has broken the code that describes it. Without an outcome its slot would stay in
            # use, and its lease would be extended without end.
            outcome = Failed(run.claim, _NOT_SHOWN, kind="Exception")
            self.journal.failed(outcome)
        if not run.abandoned:
            self._end(run, outcome)

    def _end(self, run: Run, outcome: Outcome) -> None:
        if run.timer is not None:
            run.timer.cancel()
        run.claim.run_seconds = time.monotonic() - run.began
        run.task = None  # whose context has the run: a cycle that only the garbage collector would free
        del self._runs[run.claim]
        self._on_end(outcome)

    def time_out(self, run: Run, timeout: float) -> None:
        """Stops a run that has taken too long."""
        if self._runs.get(run.claim) is run:
            self._cancel(run, HandlerTimeout(f"the handler ran longer than its timeout of {timeout:g} s"))

    def _cancel(
        self,
        run: Run,
        cause: HandlerTimeout | JobCancelled | None = None,
        *,
        final: bool = False,
        interrupt: bool = True,
    ) -> None:
        task = run.task
        if task is None or run.abandoned:
            return
        if not run.job.cancelled:
            run.cause, run.final = cause, final
            run.job.mark_cancelled()
        if not interrupt:
            return
        if run.timer is not None:
            run.timer.cancel()  # its timeout must not shorten the time that it has to clean up
        task.cancel()
        # A task that is cancelled before its first step never enters `_run`, so its end is handled here.
        task.add_done_callback(lambda _: self._end_unstarted(run))
        task.get_loop().call_later(_CLEAN_UP, self._give_up, run)

    def _end_unstarted(self, run: Run) -> None:
        if self._runs.get(run.claim) is run:
            self._end(run, run.stopped(None))

    def _give_up(self, run: Run) -> None:
        if self._abandon(run):
            self._on_end(run.stopped(None))

    def _abandon(self, run: Run) -> bool:
        """Stops waiting for a handler. Returns False if it has ended meanwhile."""
        if self._runs.get(run.claim) is not run or run.task is None:
            return False
        run.abandoned = True
        run.job.mark_lost()
        run.claim.run_seconds = time.monotonic() - run.began
        del self._runs[run.claim]
        self.journal.error(
            "abandoned the handler of job %s (%s): it was cancelled and still runs, its result will be dropped",
            run.claim.job.id, run.claim.job.name,
            extra=fields_of(run.claim, final=False),
        )  # fmt: skip
        forget(run.task)
        for task, owner in self.made.items():
            if owner is run and task.cancelling():
                forget(task)  # the handler waits for it, and it has ignored the cancellation
        return True
