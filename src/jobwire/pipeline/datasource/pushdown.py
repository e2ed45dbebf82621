"""Turns filters of a query into hints for the store that is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan

from jobwire.model import State
from jobwire.pipeline.stores.boundary import Wanted


def narrowed(wanted: Wanted, one: Filter) -> Wanted:
    """Returns what is wanted once a filter of the query is known; unchanged where the filter does not help."""
    match one:
        case EqualTo(("state",), str(value)):
            return replace(wanted, states=_both(wanted.states, _states([value])))
        case In(("state",), values):
            return replace(wanted, states=_both(wanted.states, _states(values)))
        case EqualTo(("name",), str(value)):
            return replace(wanted, names=_both(wanted.names, frozenset([value])))
        case In(("name",), values):
            return replace(wanted, names=_both(wanted.names, frozenset(map(str, values))))
        case GreaterThan(("created_at",), datetime() as at) | GreaterThanOrEqual(("created_at",), datetime() as at):
            return replace(wanted, created_from=max(at, wanted.created_from or at))
        case LessThan(("created_at",), datetime() as at):
            return replace(wanted, created_before=min(at, wanted.created_before or at))
        case _:
            return wanted


def _states(values: Sequence[Any]) -> frozenset[State]:
    return frozenset(State(value) for value in values if value in set(State))


def _both(before: frozenset[Any] | None, now: frozenset[Any]) -> frozenset[Any]:
    return now if before is None else before & now
