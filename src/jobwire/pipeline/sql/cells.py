"""Values of an answer as JSON values, and as texts for CSV and tables.

>>> plain(Decimal("12")), plain(Decimal("1.5")), plain(float("nan")), plain(b"\\x00\\xff")
(12, 1.5, None, 'AP8=')
>>> as_text(None), as_text(True), as_text(["a", 1])
('', 'true', '["a",1]')
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

import orjson


def plain(value: Any) -> Any:
    """Returns a value as JSON has it: times in ISO 8601, a decimal as a number if a double holds it and else as text,
    bytes in Base64. NaN and infinities are null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, datetime):
        return value.isoformat() if value.tzinfo is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"PT{value.total_seconds():.6f}".rstrip("0").rstrip(".") + "S"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in cast("list[Any]", value)]
    return value if isinstance(value, str | int | bool | None) else str(value)


def as_text(value: Any) -> str:
    """Returns a value as text: an empty one for null, JSON for lists and objects."""
    found = plain(value)
    if found is None:
        return ""
    if isinstance(found, str):
        return found
    if isinstance(found, bool):
        return str(found).lower()
    return orjson.dumps(found, default=str).decode() if isinstance(found, list | dict) else str(found)


def _number(value: Decimal) -> int | float | str:
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value():
        return int(value)
    near = float(value)
    return near if Decimal(repr(near)) == value else format(value, "f")


def column_names(names: list[str]) -> list[str]:
    """Returns the names of an answer's columns, each once.

    >>> column_names(["a", "b", "a"])
    ['a', 'b', 'a_2']
    """
    found: list[str] = []
    for name in names:
        number, free = 1, name
        while free in found:
            number += 1
            free = f"{name}_{number}"
        found.append(free)
    return found
