"""Checks of single values. Each returns the value or raises InvalidOption with its field, the value and the rule."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, cast

from jobwire.durations import LONGEST
from jobwire.errors import InvalidOption

Seconds = float | int | timedelta
LARGEST = 2**53 - 1
"""The largest integer that every store accepts, and that Node.js reads as it is written."""
LAST_YEAR = 9899
"""To a time in this year, every duration can be added."""


def seconds(field_name: str, value: Seconds, *, minimum: float = 0.0) -> float:
    """Returns a duration in seconds. Refuses one that is not finite or below the minimum."""
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, bool) or not isinstance(value, (int, float)):  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
        raise InvalidOption(field_name, value, "must be a number of seconds or a timedelta")
    else:
        number = math.inf if abs(value) > LONGEST else float(value)
    if not minimum <= number <= LONGEST:
        raise InvalidOption(field_name, value, f"must be at least {minimum:g} s and at most 100 years")
    return number


def whole(field_name: str, value: Any, *, minimum: int) -> int:
    """Returns an integer. Refuses one below the minimum, one that a store can't hold, and booleans."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidOption(field_name, value, "must be an integer")
    if value < minimum:
        raise InvalidOption(field_name, value, f"must be at least {minimum}")
    if value > LARGEST:
        raise InvalidOption(field_name, value, f"must be at most {LARGEST}")
    return value


def yes_or_no(field_name: str, value: Any) -> bool:
    """Returns True or False. Refuses other values, also those that are true or false in Python."""
    if not isinstance(value, bool):
        raise InvalidOption(field_name, value, "must be True or False")
    return value


def items(field_name: str, value: Any, what: str) -> list[Any]:
    """Returns the values of a list, or of another iterable. Refuses a text, which is rarely meant as its letters."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InvalidOption(field_name, value, f"must be a list of {what}, not one value")
    return list(cast("Iterable[Any]", value))


def mapping(field_name: str, value: Any) -> Any:
    """Returns a dict or another mapping."""
    if not isinstance(value, Mapping):
        raise InvalidOption(field_name, value, "must be a dict")
    return cast("Mapping[Any, Any]", value)


def function(field_name: str, value: Any, arguments: int, rule: str, *, plain: bool = False) -> Any:
    """Returns a function that is called with so many arguments. Refuses what could not be called so, and with `plain`
    also a coroutine function, whose result would never be awaited."""
    if not callable(value) or isinstance(value, type) or not takes(value, arguments):
        raise InvalidOption(field_name, value, rule)
    if plain and is_async(value):
        raise InvalidOption(field_name, value, "must be a plain function, not a coroutine function")
    return value


def is_async(function: Any) -> bool:
    """Returns True for a coroutine function, and for an object whose `__call__` is one."""
    return any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004 - the method itself


def takes(function: Callable[..., Any], arguments: int) -> bool:
    """Returns True if the function accepts that many positional arguments, or has no signature to judge by."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have none
        return True
    try:
        signature.bind(*range(arguments))
    except TypeError:
        return False
    return True


def aware(field_name: str, value: Any) -> datetime:
    """Returns a datetime. Refuses one without a time zone, and one near the end of Python's calendar."""
    if not isinstance(value, datetime):
        raise InvalidOption(field_name, value, "must be a datetime")
    if value.tzinfo is None:
        raise InvalidOption(field_name, value, "must have a time zone, e.g. datetime.now(timezone.utc)")
    if value.year > LAST_YEAR:
        raise InvalidOption(field_name, value, f"must not be after the year {LAST_YEAR}")
    return value


def text(field_name: str, value: Any) -> str:
    """Returns a text that every store can hold. Refuses an empty one."""
    if not isinstance(value, str):
        raise InvalidOption(field_name, value, "must be a string")
    if not value:
        raise InvalidOption(field_name, value, "must not be empty")
    try:
        if not value.isascii():
            value.encode()
    except UnicodeEncodeError:
        raise InvalidOption(field_name, value, "must be valid Unicode (it has a lone surrogate)") from None
    return value


def maybe_empty(field_name: str, value: Any) -> str:
    """Returns a text that every store can hold, perhaps empty."""
    return "" if value == "" else text(field_name, value)


def job_id(value: Any) -> str:
    """Returns the id of a job, checked."""
    return text("job_id", value)


def cursor(field_name: str, value: Any) -> str | None:
    """Returns a cursor from an earlier call, checked. None means the start."""
    return None if value is None else text(field_name, value)


def skip(value: Any, cursor: str | None) -> int:
    """Returns how many jobs to skip at the start of a list. Refuses a skip together with a cursor."""
    number = whole("skip", value, minimum=0)
    if number and cursor is not None:
        raise InvalidOption("skip", value, "can't be combined with a cursor: a page goes on right after the one before")
    return number


def timeout(value: Seconds | None) -> float | None:
    """Returns how long to wait, in seconds. None means without limit."""
    return None if value is None else seconds("timeout", value)
