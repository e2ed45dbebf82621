"""The life of an app in one worker: what is made once, and cleaned up when the worker ends."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from jobwire.checks import Seconds, seconds, takes
from jobwire.errors import InvalidOption
from jobwire.queue import Queue
from jobwire.tasks.depends import Provider, Values
from jobwire.tasks.failures import FailureHooks
from jobwire.tasks.middleware import Middleware
from jobwire.tasks.registry import QueueTasks
from jobwire.tasks.runner import TaskRunner, in_this_process
from jobwire.worker.handlers import Runner, make_runner
from jobwire.worker.settings import async_context

_LEAST_PATIENCE = 3.0

_log = logging.getLogger("jobwire.tasks")


class Life:
    """Makes the runners of an app's queues, and enters the app's lifespan around them. `overrides` are providers that
    stand in for others. Without `children`, tasks with executor="process" run in this process."""

    def __init__(
        self,
        hooks: FailureHooks,
        lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None,
        middleware: Middleware,
        *,
        release: bool,
        overrides: Mapping[Provider, Provider] | None = None,
        children: bool = True,
    ) -> None:
        self.hooks = hooks
        self._lifespan = lifespan
        self._middleware = middleware
        self._release = release
        self._values = Values(overrides)
        self._children = children

    def of(self, queue: QueueTasks) -> QueueLife:
        return QueueLife(self, queue)

    def runner(self, queue: QueueTasks) -> Runner:
        """Returns the runner of one queue's tasks, and of the plain handler of its other jobs."""
        return TaskRunner(
            queue.name,
            [task if self._children else in_this_process(task) for task in queue.tasks.values()],
            self._middleware.running,
            self._values,
            by_name=queue.by_name,
            others=None if queue.handler is None else make_runner(queue.handler, None, f"jobwire-{queue.name}"),
            release=self._release,
        )

    @asynccontextmanager
    async def run(
        self, limits: Mapping[str, int], queue: Callable[[str], Queue], patience: Seconds = 0.0
    ) -> AsyncGenerator[None]:
        """Surrounds the work: sets the limits of queues, enters the lifespan, and cleans up at the end. Hooks under way
        have `patience` to end, at least three seconds, and so has the clean-up of values of the process."""
        within = max(seconds("shutdown_timeout", patience), _LEAST_PATIENCE)
        for name, most in limits.items():
            await queue(name).admin.limit_concurrency(most)
        async with self._lifespan() if self._lifespan is not None else nullcontext():
            try:
                yield
            finally:
                await self.hooks.finish(within)
                await self._clean_up(within, sys.exc_info())

    async def _clean_up(self, within: float, raised: Any) -> None:
        limit = asyncio.timeout(within)
        try:
            async with limit:
                await self._values.__aexit__(*raised)
        except TimeoutError:
            if not limit.expired():
                raise
            _log.error(
                'the clean-up of dependencies with scope="process" took longer than %g s; the worker ends without it',
                within,
            )


def lifespan_of(given: Any) -> Callable[[Any], AbstractAsyncContextManager[Any]] | None:
    """Returns an app's lifespan as a function that takes the app. It may be given as one without arguments, and as a
    generator that contextlib has not made a context manager of."""
    if given is None:
        return None
    rule = "must be a function that takes the app and returns an async context manager"
    if not callable(given) or not (takes(given, 0) or takes(given, 1)):
        raise InvalidOption("lifespan", given, rule)
    made = async_context("lifespan", given, rule)
    return made if takes(given, 1) else lambda app: made()


class QueueLife:
    """One queue of a life, as a Worker takes it."""

    def __init__(self, life: Life, queue: QueueTasks) -> None:
        self._life = life
        self._queue = queue

    def make_runner(self, queue: str) -> Runner:
        return self._life.runner(self._queue)
