"""Runs a claimed job in this process, as a worker does, and keeps what its task has raised."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from jobwire.boundary import Backend, Claim, Failed, Outcome
from jobwire.journal import Journal
from jobwire.testing.store import WORKER_ID
from jobwire.worker.active import ActiveJob
from jobwire.worker.handler_tasks import contained_tasks
from jobwire.worker.handlers import Begin, Runner
from jobwire.worker.running import RunningJobs

_CLEAN_UP = 5.0


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run: its outcome, and the exception that the task has raised, if any."""

    outcome: Outcome
    error: BaseException | None

    def reason(self) -> Exception:
        """Returns the error of a run that did not complete. One that would end the test's event loop is wrapped."""
        if isinstance(self.error, Exception):
            return self.error
        reason = self.outcome.error if isinstance(self.outcome, Failed) else type(self.outcome).__name__.lower()
        wrapped = RuntimeError(f"the run has not completed: {reason}")
        wrapped.__cause__ = self.error
        return wrapped


async def run_claim(runner: Runner, backend: Backend, claim: Claim, *, logs: bool = True) -> Ended:
    """Runs a job from its claim to its outcome, which is not settled."""
    done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    kept = _Kept(runner)
    journal = _Journal(claim.job.queue, logs=logs)
    running = RunningJobs(
        backend=backend, runner=kept, leases=_Leases(), journal=journal, timeout=None, on_end=done.set_result
    )
    with contained_tasks():
        running.start(claim)
        try:
            outcome = await asyncio.shield(done)
        except asyncio.CancelledError:
            await running.leave(_CLEAN_UP)
            raise
    return Ended(outcome, journal.raised or kept.error)


class _Leases:
    """There is no other worker that could take the job away."""

    async def extend(self, claim: Claim) -> bool:
        return True


class _Kept:
    """Keeps what a runner raises. A worker makes an outcome of it, in which the exception itself is missing."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.error: BaseException | None = None

    def can_interrupt(self, job: ActiveJob) -> bool:
        return self._runner.can_interrupt(job)

    async def __call__(self, job: ActiveJob, begin: Begin) -> Any:
        try:
            return await self._runner(job, begin)
        except BaseException as error:
            self.error = error
            raise

    def runs_here(self) -> bool:
        return self._runner.runs_here()

    def close(self) -> None: ...


class _Journal(Journal):
    """Keeps the error of a failed run, which for a timeout is not what the task has raised."""

    def __init__(self, queue: str, *, logs: bool) -> None:
        super().__init__(WORKER_ID, queue)
        self._logs = logs
        self.raised: BaseException | None = None

    def failed(self, failed: Failed, error: BaseException | None = None) -> None:
        self.raised = error
        if self._logs:
            super().failed(failed, error)
