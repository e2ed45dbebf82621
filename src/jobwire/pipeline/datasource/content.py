"""Compares the contents of jobs."""

from __future__ import annotations

import hashlib
from typing import Any, cast

from jobwire import codec

_no_containers = frozenset({dict, list}).isdisjoint


def content_of(data: Any, name: str | None) -> str:
    """Returns a digest that is the same for every spelling of the same JSON: PostgreSQL stores keys in an order of its
    own."""
    return hashlib.sha256(codec.dumps([_in_order(data), name])).hexdigest()


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if _no_containers(map(type, fields.values())):  # as in most payloads
            return {key: fields[key] for key in sorted(fields)}
        return {key: _in_order(fields[key]) for key in sorted(fields)}
    if isinstance(value, list):
        return [_in_order(item) for item in cast("list[Any]", value)]
    return value
