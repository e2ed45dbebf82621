"""The link between two steps: which parameter gets the previous result, and whether the types can fit.

Only types that plainly differ in JSON are refused when a chain is made. Classes, unions and the like are left to the
worker, which reads the value by the parameter's type and fails the job if it does not fit.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, get_args, get_origin

from jobwire.errors import InvalidOption
from jobwire.tasks.task import Call

_JSON = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "boolean",
    type(None): "null",
    None: "null",
    list: "array",
    tuple: "array",
    set: "array",
    frozenset: "array",
    dict: "object",
}
_ALSO_FITS = {("whole number", "number")}


def open_parameter(step: str, call: Call[Any]) -> str | None:
    """Returns the parameter that gets the previous result: the one given as `previous`, or else the required one that
    was not given. None: the call has all of its arguments, so that it does not use the result."""
    task = call.task.name
    if len(call.marked) > 1:
        raise InvalidOption(step, call, f"has several parameters given as previous: {', '.join(call.marked)}")
    if call.marked:
        if call.missing:
            raise _missing(step, call)
        return call.marked[0]
    if len(call.missing) > 1:
        rule = f"lacks {', '.join(call.missing)} of task {task}: give all but one, which gets the previous result"
        raise InvalidOption(step, call, rule)
    return call.missing[0] if call.missing else None


def check_first(step: str, call: Call[Any]) -> None:
    """Refuses a call that needs a previous result where there is none."""
    if call.marked:
        raise InvalidOption(step, call, f"has {call.marked[0]}=previous, and there is no step before it")
    if call.missing:
        raise _missing(step, call)


def _missing(step: str, call: Call[Any]) -> InvalidOption:
    return InvalidOption(step, call, f"lacks {', '.join(call.missing)}, required by task {call.task.name}")


def check_types(step: str, call: Call[Any], parameter: str, before: Call[Any]) -> None:
    """Refuses a call whose parameter can't hold the result of the call before it."""
    wanted, found = call.task.parameters.kinds[parameter], before.task.parameters.result.kind
    if not _may_fit(found, wanted):
        raise InvalidOption(
            step,
            call,
            f"takes {_shown(wanted)} as {parameter}, and task {before.task.name} before it returns {_shown(found)}",
        )


def check_list_types(step: str, call: Call[Any], parameter: str, members: Sequence[Call[Any]]) -> None:
    """Refuses a call whose parameter can't hold the list of the results of a group."""
    wanted = call.task.parameters.kinds[parameter]
    kind = _json(wanted)
    if kind not in (None, "array"):
        rule = f"takes {_shown(wanted)} as {parameter}, and gets the list of the results of a group"
        raise InvalidOption(step, call, rule)
    items = get_args(wanted)
    if get_origin(wanted) not in (list, set, frozenset) or len(items) != 1:
        return
    for member in members:
        found = member.task.parameters.result.kind
        if not _may_fit(found, items[0]):
            raise InvalidOption(
                step,
                call,
                f"takes {_shown(wanted)} as {parameter}, and task {member.task.name} of the group returns "
                f"{_shown(found)}",
            )


def _may_fit(found: Any, wanted: Any) -> bool:
    one, other = _json(found), _json(wanted)
    return one is None or other is None or one == other or (one, other) in _ALSO_FITS


def _json(kind: Any) -> str | None:
    """Returns the kind of JSON value that a plain type has, or None for any other type."""
    origin = get_origin(kind)
    try:
        return _JSON.get(kind if origin is None else origin)
    except TypeError:  # not hashable
        return None


def _shown(kind: Any) -> str:
    if kind is None or kind is type(None):
        return "None"
    return kind.__name__ if isinstance(kind, type) and not isinstance(kind, types.GenericAlias) else str(kind)
