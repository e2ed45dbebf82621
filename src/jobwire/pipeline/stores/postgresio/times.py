"""Times that a calendar has: PostgreSQL can also store infinity, and years that no other program reads."""

from __future__ import annotations

from collections.abc import Sequence


def within(column: str) -> str:
    """Returns the condition that a time of the table `j` is null or lies in the years 1 to 9999."""
    return f"coalesce(j.{column} BETWEEN '0001-01-01 00:00+00' AND '9999-12-31 23:59:59.999999+00', true)"


def time_or_null(column: str) -> str:
    """Returns the time if a calendar has it, else null."""
    return f"CASE WHEN {within(column)} THEN j.{column} END"


def faults(columns: Sequence[str]) -> list[str]:
    """Returns an expression for each column: a sentence if a calendar does not have its time, else null."""
    return [
        f"CASE WHEN NOT {within(column)} THEN '{column} is ' || j.{column} || ', not a date' END" for column in columns
    ]
