"""Hooks that are called when a job has failed for good."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from jobwire.boundary import Claim, Failed, Outcome, Verdict
from jobwire.errors import InvalidOption
from jobwire.model import Job, State

_log = logging.getLogger("jobwire.tasks")

Hook = Callable[[Job[Any]], Awaitable[None] | None]
"""Called with the job as it has failed: `error` and `stacktrace` are set."""


AnyHook = TypeVar("AnyHook", bound=Hook)


def hook_of(hook: Hook) -> Hook:
    """Returns the hook, checked."""
    if not callable(hook) or isinstance(hook, type):
        raise InvalidOption("on_failed", hook, "must be a function that takes the failed job")
    return hook


class FailureHooks:
    """An observer of a worker that calls the hooks. `hooks_of` returns those for a job.

    A hook is called when the store has taken the failure. It is not called if the worker dies at this moment, nor for a
    job that fails because its workers died too often.
    """

    def __init__(self, hooks_of: Callable[[Job[Any]], list[Hook]]) -> None:
        self._hooks_of = hooks_of
        self._calls: set[asyncio.Task[None]] = set()

    def started(self, claim: Claim) -> None: ...

    def settled(self, outcome: Outcome, verdict: Verdict) -> None:
        if verdict is not Verdict.FAILED or not isinstance(outcome, Failed):
            return
        job = outcome.claim.job
        hooks = self._hooks_of(job)
        if hooks:
            stack = (outcome.stack,) if outcome.stack else ()
            failed = replace(job, state=State.FAILED, error=outcome.error, stacktrace=(*job.stacktrace, *stack))
            call = asyncio.create_task(_call(hooks, failed))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    async def finish(self) -> None:
        """Waits for the calls under way."""
        while self._calls:
            await asyncio.wait(self._calls)


async def _call(hooks: list[Hook], job: Job[Any]) -> None:
    for hook in hooks:
        try:
            if inspect.iscoroutinefunction(hook):
                await hook(job)
            else:
                await asyncio.to_thread(hook, job)
        except Exception:
            _log.exception(
                "the on_failed hook %s raised for job %s of queue %s",
                getattr(hook, "__qualname__", hook), job.id, job.queue, extra={"job": job.id, "queue": job.queue},
            )  # fmt: skip
