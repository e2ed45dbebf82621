"""Commands as bytes, by hiredis."""

from __future__ import annotations

from typing import Any

from hiredis import pack_command  # pyright: ignore[reportUnknownVariableType] its stub is incomplete


def packed(command: tuple[Any, ...]) -> bytes:
    """Returns the command as it is sent. Hiredis refuses numbers of other types than int and float, such as those of an
    IntEnum, which are sent as the numbers that they are."""
    try:
        return pack_command(command)
    except TypeError:
        return pack_command(tuple(_plain(part) for part in command))


def _plain(part: Any) -> Any:
    if isinstance(part, int):
        return int(part)
    return float(part) if isinstance(part, float) else part
