"""Durations, numbers and moments on a command line."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from jobwire.durations import RULE, seconds_in

_MOST_DIGITS = 100


def duration(text: str) -> float:
    """Returns the seconds of a number, or of numbers with units.

    >>> duration("90"), duration("1h30m")
    (90.0, 5400.0)
    """
    found = seconds_in(str(text))
    if found is None:
        raise typer.BadParameter(f"{RULE} (got {text!r})")
    return found


def whole_number(text: str) -> int | None:
    """Returns the number that a text of digits has, None for other texts and for more digits than any limit has.

    >>> whole_number("100"), whole_number("-1"), whole_number("9" * 5000)
    (100, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None


def moment(text: str) -> datetime:
    """Returns a time. One without a zone is in the local zone.

    >>> moment("2030-01-31T12:00+02:00").isoformat()
    '2030-01-31T10:00:00+00:00'
    """
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        raise typer.BadParameter(f"write a time such as 2030-01-31T12:00 or 2030-01-31T12:00Z (got {text!r})") from None
    try:
        return time.astimezone(UTC)
    except (OverflowError, OSError, ValueError):
        raise typer.BadParameter(f"is not a time that can be used (got {text!r})") from None
