"""The app: the tasks of a program, and the store that their jobs are in."""

# A coroutine function is a function, too.
# pyright: reportOverlappingOverload=false

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Never, ParamSpec, Self, TypeVar, Unpack, overload

from jobwire import spelling
from jobwire.boundary import Capabilities
from jobwire.checks import Seconds, mapping, text
from jobwire.connection import Connection, resolve
from jobwire.errors import InvalidOption
from jobwire.model import Job
from jobwire.options import DEFAULT_SIZE_LIMIT, JobOptions
from jobwire.preparing import defaults_of
from jobwire.queue import Queue
from jobwire.rate import Rate
from jobwire.tasks.define import TaskOptions, define
from jobwire.tasks.depends import Provider
from jobwire.tasks.failures import AnyHook, FailureHooks, Hook, hook_of
from jobwire.tasks.life import Life, lifespan_of
from jobwire.tasks.middleware import Middleware
from jobwire.tasks.registry import QueueTasks, Registry
from jobwire.tasks.store import AppStore
from jobwire.tasks.task import CoroutineTask, FunctionTask, Task
from jobwire.tasks.unique import By
from jobwire.worker import Observer, QueueHandler, Worker
from jobwire.worker.handlers import Executor, Handler, Runner

if TYPE_CHECKING:
    from jobwire.testing import Clock, Testing

P = ParamSpec("P")
R = TypeVar("R")
AnyHandler = TypeVar("AnyHandler", bound=Handler)
AppLifespan = Callable[["App"], AbstractAsyncContextManager[Any]]
_PATIENCE = 30.0
"""Seconds that hooks and clean-up have at a worker's end: a Worker's own default of `shutdown_timeout`."""
_APP_OPTIONS = ("url", "defaults", "middleware", "lifespan", "unknown", "size_limit", "wait_for_store")


_NOT_FOR_WORKERS = {
    "url": "can't be given: the app has its store, which App(url) or JOBWIRE_URL names",
    "lifespan": "can't be given: it belongs to the app, as App(lifespan=…)",
    "executor": "can't be given: each task has its own, as @app.task(executor=…)",
}


class Decorator:
    """Makes a task of a function, with the settings that `app.task(…)` was given."""

    def __init__(self, make: Callable[[Callable[..., Any]], Task[..., Any]]) -> None:
        self._make = make

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> CoroutineTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> FunctionTask[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Any:
        return self._make(function)


class App:
    """The tasks of a program, and the store that their jobs are in.

        app = App("bullmq+redis://127.0.0.1:6379")

        @app.task(queue="emails", attempts=3)
        async def send_welcome(to: str) -> Receipt: ...

    Give a URL, a Connection to share, or nothing, as to Queue. `defaults` are the options of every task's jobs, unless
    the task has its own. `middleware` runs around every task, the first one outermost. `lifespan` is a function that
    takes the app and returns an async context manager, entered once in each worker process; `app.state` is for what it
    opens. `unknown` is what happens to a job whose name no task has: "fail" fails it for good, "release" puts it back
    for other workers.
    """

    def __init__(
        self,
        url: str | Connection | None = None,
        *,
        defaults: JobOptions | None = None,
        middleware: Sequence[Any] = (),
        lifespan: AppLifespan | None = None,
        unknown: Literal["fail", "release"] = "fail",
        size_limit: int | None = DEFAULT_SIZE_LIMIT,
        wait_for_store: Seconds = 0.0,
        **others: Never,
    ) -> None:
        for option, value in others.items():
            raise spelling.unknown(option, value, _APP_OPTIONS, "an App")
        if unknown not in ("fail", "release"):
            raise InvalidOption("unknown", unknown, "must be fail or release")
        connection, owns = resolve(url)
        self.store = AppStore(connection, owns=owns, size_limit=size_limit, wait_for_store=wait_for_store)
        """The store of the tasks' jobs. `testing` replaces it for a while."""
        self.middleware = Middleware(middleware)
        self.state = SimpleNamespace()
        self._lifespan = lifespan_of(lifespan)
        self._unknown = unknown
        self._defaults: JobOptions = mapping("defaults", defaults) if defaults is not None else {}
        defaults_of(self._defaults)
        self._registry = Registry(self.capabilities)
        self._hooks: list[Hook] = []

    @property
    def connection(self) -> Connection:
        """The connection to the store."""
        return self.store.connection

    @property
    def capabilities(self) -> Capabilities:
        """The features of the store's protocol."""
        return self.connection.backend.capabilities

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:
        """The tasks by their names. Two of one name in different queues are "queue.name"."""
        return self._registry.tasks()

    def __repr__(self) -> str:
        return f"<App of {len(self.tasks)} tasks, {self.connection.address.redacted}>"

    # --- defining ---------------------------------------------------------------------------------------------------

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> CoroutineTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> FunctionTask[P, R]: ...
    @overload
    def task(
        self,
        function: None = None,
        /,
        *,
        queue: str | None = None,
        name: str | None = None,
        executor: Executor | None = None,
        rate: Rate | None = None,
        max_running: int | None = None,
        limit_by: str | None = None,
        unique: By | None = None,
        middleware: Sequence[Any] = (),
        on_failed: Hook | None = None,
        **options: Unpack[TaskOptions],
    ) -> Decorator: ...
    def task(self, function: Callable[..., Any] | None = None, /, **settings: Any) -> Any:
        """Makes a function a task: `@app.task`, or `@app.task(queue="emails", attempts=3)`.

        * `queue`: where its jobs go, by default a queue of the task's name.
        * `name`: the jobs' name, by default the function's.
        * `executor`: as for a Worker.
        * `rate`, `max_running`: limits over all workers, of a task with a queue of its own. With `limit_by="tenant"`
          they hold for each value of that parameter by itself.
        * `unique`: `by("user_id", for_=3600)` adds no second job for a user within an hour.
        * `timeout`: the longest time of a run.

        The others are options of its jobs, as for `Queue.add`.
        """
        make = partial(self._make, settings)
        return Decorator(make) if function is None else make(function)

    def _make(self, settings: dict[str, Any], function: Callable[..., Any]) -> Task[..., Any]:
        given = dict(settings)
        hook = given.pop("on_failed", None)
        hooks = [] if hook is None else [hook_of(hook)]
        task = define(self, function, self._defaults, **given)
        self._registry.add(task, hooks)
        return task

    def handler(self, queue: str) -> Callable[[AnyHandler], AnyHandler]:
        """Lets a plain handler run the jobs of a queue that no task is for: `@app.handler("legacy")`."""
        name = text("queue", queue)

        def add(handler: AnyHandler) -> AnyHandler:
            self._registry.add_handler(name, handler)
            return handler

        return add

    def on_failed(self, hook: AnyHook) -> AnyHook:
        """Calls the function with every job of the app that has failed for good. Usable as a decorator."""
        self._hooks.append(hook_of(hook))
        return hook

    def add_hook(self, task: Task[..., Any], hook: Hook) -> None:
        """Calls the function with every job of the task that has failed for good."""
        self._registry.add_hook(task, hook_of(hook))

    # --- producing --------------------------------------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        """Returns a queue of the app's store."""
        return self.store.queue(name)

    async def open(self) -> Self:
        """Connects to the store. Without this, that happens when the first job is added."""
        await self.store.open()
        return self

    async def close(self) -> None:
        """Waits for the adds in progress and disconnects."""
        await self.store.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- working ----------------------------------------------------------------------------------------------------

    def worker(
        self,
        queues: Iterable[str] | Mapping[str, int] | None = None,
        *,
        concurrency: int = 10,
        observers: Sequence[Observer] = (),
        **options: Any,
    ) -> Worker:
        """Returns a worker for the app's tasks: `async with app.worker():`, or `await app.worker().run()`.

        * `queues`: the ones to work on, by default all. A dict gives each the number of its jobs that may run at once.
        * `concurrency`: how many may run in all.

        The other options are those of a Worker.
        """
        for option, rule in _NOT_FOR_WORKERS.items():
            if option in options:
                raise InvalidOption(option, options[option], rule)
        chosen = self._registry.chosen(queues)
        life = self._new_life()
        handlers = {
            name: QueueHandler(
                life.of(self._registry.queue(name)),
                concurrency=own,
                rate=self._rate(name),
                native=self._native(name, options.get("native")),
            )
            for name, own in chosen.items()
        }
        return Worker(
            handlers,
            url=self.connection,
            concurrency=concurrency,
            lifespan=partial(
                life.run, self._registry.limits(chosen), self.queue, options.get("shutdown_timeout", _PATIENCE)
            ),
            observers=[life.hooks, *observers],
            **options,
        )

    def make_runner(self, queue: str) -> Runner:
        """Returns the runner for a Worker of your own: `Worker({"emails": app, "other": handler}, …)`. Only for an app
        without a lifespan, hooks and dependencies of the process, which `app.worker` sees to."""
        self._registry.chosen([queue])
        tasks = self._registry.queue(queue)
        shared = [name for task in tasks.tasks.values() for name in task.parameters.shared]
        if self._lifespan is not None or self._hooks or tasks.hooks or shared:
            rule = "needs app.worker(), which enters the lifespan and closes what is shared by the jobs of a process"
            raise InvalidOption("handler", self, rule)
        return self._new_life().runner(tasks)

    def make_worker(self, *, queues: Iterable[str] | None = None, **options: Any) -> Worker:
        """Returns the worker that `jobwire worker module:app` runs."""
        return self.worker(queues, **options)

    def testing(
        self,
        *,
        eager: bool = False,
        overrides: Mapping[Provider, Provider] | None = None,
        clock: Clock | None = None,
    ) -> Testing:
        """Lets the app work in memory for a block, for tests: `async with app.testing() as t:`.

        Its store is replaced by an empty one in memory, which refuses what the app's protocol refuses. With `eager`,
        adding a job runs it at once, and raises its error. `overrides` has functions to call instead of those that
        dependencies name. `clock` is the time of the store, by default a new Clock. docs/testing.md shows all of it.
        """
        from jobwire.testing.app import Testing  # noqa: PLC0415 - only tests need it

        return Testing(self, eager=eager, overrides=overrides, clock=clock)

    def _native(self, queue: str, given: object | None) -> object | None:
        """Returns the native options of a worker for a queue whose limits hold per key, or None for the worker's."""
        task, limits = self._registry.limited_by_key(queue), self.connection.backend.key_limits
        if task is None or limits is None:
            return None
        return limits.worker_options(given, task.settings.rate, task.settings.max_running)

    def _rate(self, queue: str) -> Rate | None:
        return self._registry.rate(queue) if self.store.keeps_rates else None

    def _new_life(self) -> Life:
        lifespan = None if self._lifespan is None else partial(self._lifespan, self)
        return Life(
            FailureHooks(self._hooks_of),
            lifespan,
            self.middleware,
            release=self._unknown == "release",
            overrides=self.store.overrides,
            children=self.store.has_children,
        )

    def _hooks_of(self, job: Job[Any]) -> list[Hook]:
        return [*self._registry.hooks(job), *self._hooks]


def new_life(app: App) -> Life:
    """Returns a life of the app, for tests that run its tasks without a worker."""
    return app._new_life()  # pyright: ignore[reportPrivateUsage] not for users


def tasks_of(app: App, queue: str) -> QueueTasks | None:
    """Returns the tasks of a queue, or None if the app has neither a task nor a handler for it."""
    return app._registry.find(queue)  # pyright: ignore[reportPrivateUsage] not for users
