"""Dependencies: values that the worker provides to a task, such as a pool of connections.

    async def open_pool() -> AsyncIterator[Pool]:
        async with Pool(…) as pool:
            yield pool

    @app.task
    async def send(to: str, pool: Pool = Depends(open_pool, scope="process")) -> None: ...

A provider is a function, a coroutine function, a generator that yields the value once (plain or async), or a function
made by contextlib's decorators. What follows the yield runs when the job has ended, before its end is reported, or for
scope="process" when the worker ends. A provider may have dependencies of its own. Each provider is called once per job,
or once per process. A plain provider runs where its task runs: in the event loop for a coroutine function, in a thread
for a plain function.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, TypeVar, overload

from jobwire.errors import InvalidOption
from jobwire.spelling import refuses_typos

Value = TypeVar("Value")
Scope = Literal["job", "process"]
Provider = Callable[..., Any]
Call = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a plain function where the task runs, and returns its result."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """The default of a parameter that the worker provides. Made by `Depends`."""

    provider: Provider
    scope: Scope


@overload
def Depends(provider: Callable[..., AsyncIterator[Value]], *, scope: Scope = "job") -> Value: ...
@overload
def Depends(provider: Callable[..., Iterator[Value]], *, scope: Scope = "job") -> Value: ...
@overload
def Depends(provider: Callable[..., AbstractAsyncContextManager[Value]], *, scope: Scope = "job") -> Value: ...
@overload
def Depends(provider: Callable[..., Awaitable[Value]], *, scope: Scope = "job") -> Value: ...
@overload
def Depends(provider: Callable[..., Value], *, scope: Scope = "job") -> Value: ...
@refuses_typos("Depends()")
def Depends(provider: Provider, *, scope: Scope = "job") -> Any:  # noqa: N802 - reads as a word in a signature
    """Marks a parameter as provided by the worker. For type checkers the result is the provider's value."""
    if not callable(provider):
        raise InvalidOption("provider", provider, "must be a function")
    if scope not in ("job", "process"):
        raise InvalidOption("scope", scope, "must be job or process")
    check_provider(provider, scope)
    return Dependency(provider, scope)


def check_provider(provider: Provider, scope: Scope) -> None:
    """Refuses a provider with parameters that nothing gives a value."""
    try:
        parameters = inspect.signature(provider).parameters
    except (TypeError, ValueError):
        rule = "must be a function whose parameters can be read; write one that calls this"
        raise InvalidOption("provider", provider, rule) from None
    for name, parameter in parameters.items():
        inner = parameter.default
        if isinstance(inner, Dependency):
            if scope == "process" and inner.scope == "job":
                rule = f"is needed once per process and can't depend on {name}, which is made for each job"
                raise InvalidOption("provider", provider, rule)
        elif inner is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InvalidOption("provider", provider, f"needs a default for {name}, or Depends(…)")


def dependencies_of(provider: Provider) -> dict[str, Dependency]:
    """Returns the provider's own dependencies by the names of their parameters."""
    parameters = inspect.signature(provider).parameters.items()
    return {name: one.default for name, one in parameters if isinstance(one.default, Dependency)}


def is_shared(one: Dependency) -> bool:
    """Returns True if the dependency or one below it is made once per process."""
    return one.scope == "process" or any(map(is_shared, dependencies_of(one.provider).values()))


async def call_here(function: Callable[[], Any]) -> Any:
    """Calls a plain function in the event loop."""
    return function()


class Values:
    """The values of one scope, made at their first use and cleaned up in the opposite order when it ends. `overrides`
    has other providers to call, by the ones that are asked for."""

    def __init__(self, overrides: Mapping[Provider, Provider] | None = None) -> None:
        self.overrides = overrides or {}
        self._values: dict[Provider, Any] = {}
        self._locks: dict[Provider, asyncio.Lock] = {}
        self._cleanup = AsyncExitStack()

    async def __aenter__(self) -> Values:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._values.clear()
        await self._cleanup.__aexit__(kind, error, trace)

    async def get(self, provider: Provider, process: Values, call: Call) -> Any:
        """Returns the provider's value. `process` has the values of the process."""
        if provider not in self._values:
            async with self._locks.setdefault(provider, asyncio.Lock()):
                if provider not in self._values:
                    made_by = self.overrides.get(provider, provider)
                    given = await provide(dependencies_of(made_by), self, process, call)
                    self._values[provider] = await self._make(made_by, given, call)
        return self._values[provider]

    async def _make(self, provider: Provider, given: dict[str, Any], call: Call) -> Any:
        written = inspect.unwrap(provider)
        if inspect.isasyncgenfunction(written):
            manager: Any = provider(**given)
            if inspect.isasyncgen(manager):
                manager = contextlib.asynccontextmanager(lambda: manager)()
            return await self._cleanup.enter_async_context(manager)
        if inspect.isgeneratorfunction(written):
            inner: Any = provider(**given)
            if inspect.isgenerator(inner):
                inner = contextlib.contextmanager(lambda: inner)()
            return await self._cleanup.enter_async_context(_Plain(inner, call))
        if inspect.iscoroutinefunction(written):
            return await provider(**given)
        value = await call(lambda: provider(**given))
        return await value if inspect.isawaitable(value) else value


class _Plain(AbstractAsyncContextManager[Any]):
    """A plain context manager, entered and left where the task runs."""

    def __init__(self, inner: AbstractContextManager[Any], call: Call) -> None:
        self._inner = inner
        self._call = call

    async def __aenter__(self) -> Any:
        return await self._call(self._inner.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._call(lambda: self._inner.__exit__(kind, error, trace))


async def provide(dependencies: dict[str, Dependency], job: Values, process: Values, call: Call) -> dict[str, Any]:
    """Returns the values of the dependencies by the names of their parameters."""
    return {
        name: await (process if one.scope == "process" else job).get(one.provider, process, call)
        for name, one in dependencies.items()
    }
