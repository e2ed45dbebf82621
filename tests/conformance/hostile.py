"""Handlers that do what no handler should, each by the name that a job's data gives. Child processes import them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from jobwire import Snooze
from jobwire.errors import RateLimited


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("str() of this exception raises")

    __repr__ = __str__


class Hiding(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("the name of this class can't be read")


class Nameless(Exception, metaclass=Hiding): ...


class Lying(Exception):
    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("the class of this exception can't be read")


class Rude(BaseException):
    """Not an Exception."""


class Unpicklable(Exception):
    def __reduce__(self) -> NoReturn:
        raise TypeError("this exception can't be pickled")


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("repr() of this object raises")


class Imposter(dict[str, Any]):
    def items(self) -> NoReturn:  # type: ignore[override]
        raise RuntimeError("items() of this dict raises")


def _raise(error: BaseException) -> NoReturn:
    raise error


def _local() -> NoReturn:
    class Local(Exception): ...

    raise Local("made inside a function")


def _deep() -> Any:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    return value


def _endless() -> int:
    return _endless() + 1


ACTS: dict[str, Callable[[], Any]] = {
    "snooze none": lambda: _raise(Snooze(None)),  # type: ignore[arg-type]
    "snooze text": lambda: _raise(Snooze("5")),  # type: ignore[arg-type]
    "snooze nan": lambda: _raise(Snooze(float("nan"))),
    "snooze inf": lambda: _raise(Snooze(float("inf"))),
    "snooze unprintable": lambda: _raise(Snooze(Unprintable(), "later")),  # type: ignore[arg-type]
    "snooze negative": lambda: _raise(Snooze(-1)),
    "snooze true": lambda: _raise(Snooze(True)),
    "rate limited text": lambda: _raise(RateLimited("5")),  # type: ignore[arg-type]
    "rate limited inf": lambda: _raise(RateLimited(float("inf"))),
    "rate limited negative": lambda: _raise(RateLimited(-1)),
    "rate limited true": lambda: _raise(RateLimited(True)),
    "rate limited none": lambda: _raise(RateLimited(None)),  # type: ignore[arg-type]
    "rate limited nan": lambda: _raise(RateLimited(float("nan"))),
    "nameless": lambda: _raise(Nameless()),
    "lying": lambda: _raise(Lying("no class")),
    "mute": lambda: _raise(Mute()),
    "rude": lambda: _raise(Rude("not an Exception")),
    "unpicklable": lambda: _raise(Unpicklable("stays here")),
    "local": _local,
    "keyboard interrupt": lambda: _raise(KeyboardInterrupt()),
    "generator exit": lambda: _raise(GeneratorExit()),
    "system exit": lambda: sys.exit("bye"),
    "system exit of an object": lambda: sys.exit(Unprintable()),  # type: ignore[arg-type]
    "cancelled": lambda: _raise(asyncio.CancelledError()),
    "stop iteration": lambda: _raise(StopIteration("over")),
    "stop async iteration": lambda: _raise(StopAsyncIteration("over")),
    "group": lambda: _raise(ExceptionGroup("both", [ValueError("one"), Mute()])),
    "recursion": _endless,
    "memory": lambda: _raise(MemoryError()),
    "long message": lambda: _raise(ValueError("x" * 5_000_000)),
    "odd message": lambda: _raise(ValueError("null \0, surrogate \udc80, newline \n")),
    "not json": Unprintable,
    "set": lambda: {1, 2},
    "nan": lambda: float("nan"),
    "deep": _deep,
    "imposter": Imposter,
}


def act(job: Any) -> Any:
    """Do what the job's data names; "good" returns."""
    return "fine" if job.data == "good" else ACTS[job.data]()


async def act_async(job: Any) -> Any:
    return act(job)
