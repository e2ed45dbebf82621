"""Checks of a Worker's arguments, made when the object is created."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any, cast

from jobwire import spelling
from jobwire.boundary import Strategy
from jobwire.checks import function, is_async, takes
from jobwire.errors import InvalidOption
from jobwire.native import NATIVE
from jobwire.worker.stats import Observer

_STRATEGY = "must be a function of (failures, job, error)"


def refuse_unknown(unknown: Mapping[str, object], init: Callable[..., None]) -> None:
    """Refuses keywords that a Worker doesn't have. The error about a native option names the class that has it."""
    for name, value in unknown.items():
        known = [one.name for one in inspect.signature(init).parameters.values() if one.kind is one.KEYWORD_ONLY]
        raise spelling.unknown(name, value, known, "a Worker", NATIVE.get(name, ""))


def strategy_of(backoff: Strategy | Mapping[str, Strategy] | None) -> Strategy | None:
    """Returns the strategy for all custom backoffs, if one function was given."""
    if backoff is None or isinstance(backoff, Mapping):
        return None
    if not callable(backoff):
        raise InvalidOption("backoff", backoff, f"{_STRATEGY}, or a dict of them by the name of a backoff")
    _check_strategy("backoff", backoff)
    return backoff


def strategies_of(backoff: Strategy | Mapping[str, Strategy] | None) -> Mapping[str, Strategy]:
    """Returns the strategies by the names of backoffs, if a dict was given."""
    if not isinstance(backoff, Mapping):
        return {}
    named = cast("Mapping[str, Strategy]", backoff)
    for name, strategy in named.items():
        _check_strategy(f"backoff.{name}", strategy)
    return dict(named)


def _check_strategy(field: str, strategy: Any) -> None:
    function(field, strategy, 3, _STRATEGY, plain=True)


def observers_of(value: Sequence[Observer]) -> tuple[Observer, ...]:
    given: Any = value
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise InvalidOption("observers", given, "must be a list of observers")
    return tuple(observer_of(f"observers[{index}]", one) for index, one in enumerate(cast("Sequence[Any]", given)))


def observer_of(field: str, value: Any) -> Observer:
    rule = "must be an object with the methods started(claim) and settled(outcome, verdict)"
    for method, arguments in (("started", 1), ("settled", 2)):
        if isinstance(value, type) or not callable(getattr(value, method, None)):
            raise InvalidOption(field, value, rule)
        function(f"{field}.{method}", getattr(value, method), arguments, rule, plain=True)
    return value


def lifespan_of(value: Any) -> Any:
    """Returns the function that makes a worker's lifespan. Without one, it makes a context that does nothing."""
    if value is None:
        return contextlib.nullcontext
    rule = "must be a function without arguments that returns an async context"
    if not callable(value) or not takes(value, 0):
        raise InvalidOption("lifespan", value, rule)
    return async_context("lifespan", value, rule)


def async_context(field: str, value: Any, rule: str) -> Any:
    """Returns a function that makes async contexts. It may be an async generator function that contextlib has not made
    one of. Refuses functions that make something else, as far as that can be seen."""
    if inspect.isasyncgenfunction(value):
        return contextlib.asynccontextmanager(value)
    if is_async(value) or inspect.isgeneratorfunction(inspect.unwrap(value)):
        raise InvalidOption(field, value, rule)
    return value


def check_handler(handler: Any) -> bool:
    """Refuses what can't be a handler of any executor. Returns True if it is a coroutine function."""
    if not callable(handler):
        raise InvalidOption("handler", handler, "must be a function or another callable")
    if isinstance(handler, type):
        raise InvalidOption("handler", handler, "is a class; give a function, or an object that can be called")
    kinds = (handler, getattr(handler, "__call__", None))  # noqa: B004 - the method itself is looked at
    if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in kinds):
        raise InvalidOption("handler", handler, "has a yield in it, so that calling it runs nothing; return the result")
    if not takes(handler, 1):
        raise InvalidOption("handler", handler, "must take one argument, the job")
    return is_async(handler)


def check_picklable(handler: Any) -> None:
    """Refuses a handler that can't be sent to a child process."""
    try:
        ForkingPickler.dumps(handler)
    except Exception as error:  # an object's own pickling may raise anything
        rule = "must be a function at the top of a module for executor='process', which sends it to another process"
        raise InvalidOption("handler", handler, f"{rule} ({error})") from None
