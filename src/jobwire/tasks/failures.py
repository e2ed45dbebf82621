"""Hooks that are called when a job has failed for good."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from jobwire.boundary import Claim, Failed, Outcome, Verdict
from jobwire.checks import function, is_async
from jobwire.journal import fields_of
from jobwire.model import Job, State
from jobwire.worker.abandoning import end_within
from jobwire.worker.threads import Threads

_log = logging.getLogger("jobwire.tasks")

Hook = Callable[[Job[Any]], Awaitable[None] | None]
"""Called with the job as it has failed: `error` and `stacktrace` are set."""


AnyHook = TypeVar("AnyHook", bound=Hook)


def hook_of(hook: Hook) -> Hook:
    """Returns the hook, checked."""
    return function("on_failed", hook, 1, "must be a function that takes the failed job")


class FailureHooks:
    """An observer of a worker that calls the hooks. `hooks_of` returns those for a job.

    A hook is called when the store has taken the failure. It is not called if the worker dies at this moment, nor for a
    job that fails because its workers died too often.
    """

    def __init__(self, hooks_of: Callable[[Job[Any]], list[Hook]]) -> None:
        self._hooks_of = hooks_of
        self._calls: dict[asyncio.Task[None], dict[str, Any]] = {}
        """The calls under way, each with the fields of its log records."""
        self._threads = Threads("jobwire-on_failed")

    def started(self, claim: Claim) -> None: ...

    def settled(self, outcome: Outcome, verdict: Verdict) -> None:
        if verdict is not Verdict.FAILED or not isinstance(outcome, Failed):
            return
        job = outcome.claim.job
        hooks = self._hooks_of(job)
        if hooks:
            stack = (outcome.stack,) if outcome.stack else ()
            failed = replace(job, state=State.FAILED, error=outcome.error, stacktrace=(*job.stacktrace, *stack))
            about = fields_of(outcome.claim, final=True)
            call = asyncio.create_task(self._call(hooks, failed, about))
            self._calls[call] = about
            call.add_done_callback(self._calls.pop)

    async def finish(self, within: float) -> None:
        """Waits for the calls under way, for so many seconds in all. Cancels the others."""
        if not self._calls:
            return
        calls = dict(self._calls)
        for late in await end_within(list(calls), within):
            about = calls[late]
            _log.error(
                "cancelled an on_failed hook for job %s of queue %s: it took longer than %g s after the worker's end",
                about["job"], about["queue"], within, extra=about,
            )  # fmt: skip
        self._threads.close()

    async def _call(self, hooks: list[Hook], job: Job[Any], about: dict[str, Any]) -> None:
        for hook in hooks:
            try:
                result: Any = hook(job) if is_async(hook) else await self._threads.call(partial(hook, job))
                if inspect.isawaitable(result):
                    await result
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # also SystemExit, which would end the worker
                _log.error(
                    "the on_failed hook %s raised for job %s of queue %s",
                    getattr(hook, "__qualname__", hook), job.id, job.queue, extra=about, exc_info=error,
                )  # fmt: skip
