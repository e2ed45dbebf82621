"""Commands as bytes, by hiredis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import hiredis

_pack: Callable[[tuple[Any, ...]], bytes] = cast("Any", hiredis).pack_command  # its stub lacks the result


def packed(command: tuple[Any, ...]) -> bytes:
    """Returns the command as it is sent. Hiredis refuses numbers of other types than int and float, such as those of an
    IntEnum, which are sent as the numbers that they are."""
    try:
        return _pack(command)
    except TypeError:
        return _pack(tuple(_plain(part) for part in command))


def _plain(part: Any) -> Any:
    if isinstance(part, int):
        return int(part)
    return float(part) if isinstance(part, float) else part
