"""Blocking forms of asynchronous classes and of what they return."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import fields
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, cast

from jobwire import forking
from jobwire import model as _model
from jobwire.portal import portal
from jobwire.preparing import AddedJobs


class Job(_model.Job):
    """A job snapshot whose `wait` blocks."""

    __slots__ = ()

    def wait(self, timeout: float | timedelta | None = None) -> Any:  # type: ignore[override]
        return portal.run(super().wait(timeout))


class Page(list[Job]):
    """Jobs of one call, and the cursor that continues after them."""

    def __init__(self, page: _model.Page) -> None:
        super().__init__(blocking(job) for job in page)
        self.cursor = page.cursor


class JobTree(_model.JobTree):
    """A tree of job snapshots whose `wait` blocks."""

    __slots__ = ()


def blocking(value: Any) -> Any:
    """Returns the result of an asynchronous call in its blocking form."""
    if isinstance(value, _model.Page):
        return Page(value)
    if isinstance(value, _model.Job):
        job = cast("_model.Job", value)
        return Job(*(getattr(job, field.name) for field in fields(job)))
    if isinstance(value, _model.JobTree):
        return JobTree(blocking(value.job), tuple(blocking(child) for child in value.children))
    if isinstance(value, (list, AddedJobs)):
        return [blocking(item) for item in cast("Iterable[Any]", value)]
    form = _forms.get(cast("Any", type(value)))
    return value if form is None else wrapped(form, value)


_forms: dict[type[Any], type[Blocking]] = {}
"""The blocking classes of objects that other objects return."""


def wrapped(form: type[Any], inner: Any) -> Any:
    """Returns the blocking form of an object that exists already."""
    made = object.__new__(form)
    made._take(inner)
    return made


def returned(form: type[Any]) -> type[Any]:
    """Makes `blocking` wrap what a blocking class is made from, and what its subclasses are."""
    made_from: type[Any] = form._made_from
    for kind in (made_from, *made_from.__subclasses__()):
        _forms[kind] = form
    return form


class Blocking:
    """The base of the generated classes: they hold the asynchronous object and live in a `with` block."""

    _made_from: type[Any]
    inner: Any

    def _take(self, inner: Any) -> None:
        """Holds the asynchronous object."""
        self.inner = inner

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = [argument.inner if isinstance(argument, Blocking) else argument for argument in args]
        named = {key: value.inner if isinstance(value, Blocking) else value for key, value in kwargs.items()}
        self._take(portal.call(lambda: self._made_from(*given, **named)))

    def __enter__(self) -> Self:
        portal.run(self.inner.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        portal.run(self.inner.__aexit__(kind, error, trace))

    def __repr__(self) -> str:
        return repr(self.inner)


def _method(function: Any) -> Any:
    @functools.wraps(function)
    def call(self: Blocking, *args: Any, **kwargs: Any) -> Any:
        result = portal.run(function(self.inner, *args, **kwargs))
        return self if result is self.inner else blocking(result)

    return call


def _plain_method(function: Any) -> Any:
    @functools.wraps(function)
    def call(self: Blocking, *args: Any, **kwargs: Any) -> Any:
        result = portal.call(lambda: function(self.inner, *args, **kwargs))
        return self if result is self.inner else blocking(result)

    return call


def iterator_of(function: Any) -> Any:
    @functools.wraps(function)
    def iterate(self: Blocking, *args: Any, **kwargs: Any) -> Iterator[Any]:
        life, source = portal.life, function(self.inner, *args, **kwargs)
        try:
            while True:
                if life is not portal.life:
                    raise RuntimeError("a forked process can't go on with its parent's iterator: make a new one")
                try:
                    yield blocking(portal.run(_next(source)))
                except StopAsyncIteration:
                    return
        finally:
            if life is portal.life:
                portal.run(source.aclose())
            else:
                forking.keep(source)

    return iterate


async def _next(source: AsyncIterator[Any]) -> Any:
    return await anext(source)


def _attribute(name: str) -> property:
    def read(self: Blocking) -> Any:
        value = getattr(self.inner, name)
        return blocking(value)

    return property(read)


def blocking_class(made_from: type[Any], attributes: tuple[str, ...] = ()) -> type[Any]:
    """The blocking class of an asynchronous one: every public coroutine blocks, every async iterator is a plain one,
    and plain methods run in the event loop's thread."""
    body: dict[str, Any] = {"_made_from": made_from, "__doc__": made_from.__doc__, "__module__": __name__}
    members = [item for part in reversed(made_from.__mro__) for item in vars(part).items()]
    for name, member in members:
        if name.startswith("_"):
            continue
        if inspect.isasyncgenfunction(member):
            body[name] = iterator_of(member)
        elif inspect.iscoroutinefunction(member):
            body[name] = _method(member)
        elif inspect.isfunction(member):
            body[name] = _plain_method(member)
        elif isinstance(member, property):
            body[name] = _attribute(name)
    body.update({name: _attribute(name) for name in attributes})
    return type(made_from.__name__, (Blocking,), body)
