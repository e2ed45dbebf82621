"""Parses JSON exactly with the standard library, for what orjson refuses or rounds.

It is slower than orjson. It keeps all digits of long integers, reads lone surrogates, and raises an error that names
the position of the fault.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from jobwire.errors import MalformedPayload
from jobwire.javascript_json import MAX_DEPTH

_BRACKET = re.compile(r'[\[\]{}]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""Matches a bracket, or a whole string."""
_EXCERPT = 20


class _Unreadable(Exception):
    def __init__(self, literal: str, reason: str) -> None:
        super().__init__(reason)
        self.literal = literal
        self.reason = reason


class _TooDeep(Exception):
    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def _too_deep_at(text: str) -> int | None:
    """Returns the position of the first container that is nested too deeply."""
    depth = 0
    for token in _BRACKET.finditer(text):
        match token.group()[0]:
            case "[" | "{":
                depth += 1
                if depth > MAX_DEPTH:
                    return token.start()
            case "]" | "}":
                depth -= 1
            case _:
                pass  # a string
    return None


def read_exactly(raw: bytes | str) -> Any:
    """Returns the parsed value. Raises MalformedPayload with the position of the fault."""
    text = raw if isinstance(raw, str) else raw.decode(errors="replace")
    try:
        if isinstance(raw, bytes):
            raw.decode()
        if (deep := _too_deep_at(text)) is not None:
            raise _TooDeep(deep)
        return json.loads(text, parse_constant=_constant, parse_float=_finite, parse_int=_integer)
    except json.JSONDecodeError as fault:
        position, reason = fault.pos, fault.msg
    except UnicodeDecodeError as fault:
        position, reason = len(fault.object[: fault.start].decode()), "invalid UTF-8"
    except _Unreadable as fault:
        position, reason = text.find(fault.literal), fault.reason
    except _TooDeep as fault:
        position, reason = fault.position, f"nested deeper than {MAX_DEPTH} levels"
    except RecursionError:
        position, reason = 0, "nested too deeply for the stack that is left"
    # An excerpt helps to find the writer. A whole payload may contain what must not get into a log.
    excerpt = text[position : position + min(_EXCERPT, len(text) // 2)]
    near = f", near {excerpt!a}" if excerpt else ""
    raise MalformedPayload(f"not JSON: {reason} at character {position} of {len(text)}{near}")


def _constant(literal: str) -> NoReturn:
    raise _Unreadable(literal, f"{literal} is not a JSON number")


def _finite(literal: str) -> float:
    number = float(literal)
    if math.isinf(number):
        raise _Unreadable(literal, "number out of range")
    return number


def _integer(literal: str) -> int:
    try:
        return int(literal)
    except ValueError:  # the interpreter's limit on digits, 4300 unless configured
        raise _Unreadable(literal, "number with too many digits") from None
