"""Values as JavaScript's `JSON.stringify` writes them, for those that orjson writes differently.

`rewritten` copies a value so that orjson writes the copy as JavaScript would: numbers in JavaScript's notation, lone
surrogates as escapes. It refuses what JSON or a double can't hold.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, cast

import orjson

from jobwire.remedies import remedy

MAX_DEPTH = 250
"""The deepest nesting that is written and read. It is the same on every Python, so that no reader overflows its stack.
orjson writes 254 levels. Only MongoDB has a lower limit: 100."""
MAX_SAFE_INTEGER = 2**53 - 1

_kind_of: Callable[[object], type[object]] = type  # for pyright, type(Any) is unknown
_SURROGATE = re.compile("[\ud800-\udfff]")
_KEY_IN_PATH = 40
_STEPS_AT_EACH_END = 8


class Refused(Exception):
    """Raised for a value that can't be written. Each container around it adds a step to the path."""

    def __init__(self, shown: object, rule: str) -> None:
        super().__init__(rule)
        self.shown = shown
        self.rule = rule
        self.steps: list[str | int] = []


def prints_alike(number: float) -> bool:
    """Returns True if orjson and JavaScript write the number alike."""
    return 1e-3 <= abs(number) < 1e15 and number % 1.0 != 0.0


def rewritten(value: Any, above: set[int]) -> Any:
    """Returns a copy that orjson writes as JavaScript would. `above` holds the ids of the containers around the
    value."""
    kind = _kind_of(value)
    if value is None or kind is bool or (kind is str and value.isascii()):
        return value
    if isinstance(value, str):
        text = str.__str__(value)
        return orjson.Fragment(_quoted(text)) if _has_surrogate(text) else text
    if isinstance(value, int):
        return _safe_integer(int.__int__(value))
    if isinstance(value, float):
        return _number(float.__float__(value))
    if not isinstance(value, (dict, list, tuple)):
        raise _not_json(value)
    container = cast("dict[Any, Any] | list[Any] | tuple[Any, ...]", value)
    if id(container) in above:
        raise Refused(type(container).__name__, "contains itself; JSON has no cycles")
    if len(above) == MAX_DEPTH:
        raise Refused(type(container).__name__, f"is nested deeper than {MAX_DEPTH} levels")
    above.add(id(container))
    copy = _rewritten_dict(container, above) if isinstance(container, dict) else _rewritten_list(container, above)
    above.discard(id(container))
    return copy


def _rewritten_dict(value: dict[Any, Any], above: set[int]) -> Any:
    copy: dict[str, Any] = {}
    for key, child in value.items():
        if not isinstance(key, str):
            shown = key if key is None or isinstance(key, (bool, int, float)) else type(key).__name__
            raise Refused(_short(shown), "has a key that is not a string; JSON has string keys only")
        text = str.__str__(key)
        try:
            copy[text] = rewritten(child, above)
        except Refused as refused:
            refused.steps.append(text)
            raise
    if not all(map(str.isascii, copy)) and any(
        map(_has_surrogate, copy)
    ):  # orjson takes no fragment as a key, so the whole object becomes a fragment
        members = (_quoted(key) + b":" + orjson.dumps(child) for key, child in copy.items())
        return orjson.Fragment(b"{" + b",".join(members) + b"}")
    return copy


def _rewritten_list(value: list[Any] | tuple[Any, ...], above: set[int]) -> list[Any]:
    copy: list[Any] = []
    for index, child in enumerate(value):
        try:
            copy.append(rewritten(child, above))
        except Refused as refused:
            refused.steps.append(index)
            raise
    return copy


def _safe_integer(number: int) -> int:
    if -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER:
        return number
    raise Refused(_short(number), "is beyond ±(2^53 - 1), where Node.js would read another number; send it as a string")


def _number(number: float) -> Any:
    if not math.isfinite(number):
        raise Refused(number, "must be a finite number; JSON has none such")
    if prints_alike(number):
        return number
    if abs(number) <= MAX_SAFE_INTEGER and number % 1.0 == 0.0:
        return int(number)
    return orjson.Fragment(javascript_number(number))


def javascript_number(number: float) -> str:
    """Returns a finite float as JavaScript's Number.prototype.toString writes it.

    >>> [javascript_number(n) for n in (36028797018963968.0, 1e21, 0.000001, 1.5e-7)]
    ['36028797018963970', '1e+21', '0.000001', '1.5e-7']
    """
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # the value is 0.<digits> times ten to the power of `point`
    point = len(digits) - len(fraction) + int(exponent or 0)
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and _SURROGATE.search(text) is not None


def _quoted(text: str) -> bytes:
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    parts: list[bytes] = []
    start = 0
    for lone in _SURROGATE.finditer(joined):
        parts.append(orjson.dumps(joined[start : lone.start()])[1:-1])
        parts.append(b"\\u%04x" % ord(lone.group()))
        start = lone.end()
    parts.append(orjson.dumps(joined[start:])[1:-1])
    return b'"' + b"".join(parts) + b'"'


def _not_json(value: object) -> Refused:
    kind = type(value)
    rule = f"{kind.__name__} is not a JSON value; send {remedy(value)}"
    return Refused(f"{kind.__module__}.{kind.__qualname__}", rule)


def _short(shown: object) -> object:
    """Replaces an integer of thousands of digits, which Python refuses to print, by a description."""
    if isinstance(shown, int) and shown.bit_length() > 256:
        return f"an integer of {shown.bit_length()} bits"
    return shown


def path_of(steps: list[str | int]) -> str:
    """Returns the path of a value as text. Of a long path, only both ends.

    >>> path_of(["to", 0, "a-b"]), path_of(list(range(20)))
    ('.to[0]["a-b"]', '[0][1][2][3][4][5][6][7] … [12][13][14][15][16][17][18][19]')
    """
    shown = [_step(step) for step in steps]
    if len(shown) > 2 * _STEPS_AT_EACH_END:
        shown[_STEPS_AT_EACH_END:-_STEPS_AT_EACH_END] = [" … "]
    return "".join(shown)


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if len(step) > _KEY_IN_PATH:
        step = step[:_KEY_IN_PATH] + "…"
    return f".{step}" if step.isidentifier() else f"[{json.dumps(step)}]"
