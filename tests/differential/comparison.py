"""Two snapshots beside each other: key by key, field by field, event by event."""

from __future__ import annotations

import difflib
from typing import Any

from .snapshot import Expiring, Snapshot


def compare(theirs: Snapshot, ours: Snapshot) -> list[str]:
    """A line for each thing that differs; none if the two are the same."""
    lines: list[str] = []
    for key in sorted(theirs.keys() | ours.keys()):
        if key not in ours:
            lines.append(f"{key}: only the peer has it: {theirs[key]!r}")
        elif key not in theirs:
            lines.append(f"{key}: only jobwire has it: {ours[key]!r}")
        elif theirs[key] != ours[key]:
            lines += _differing(key, theirs[key], ours[key])
    return lines


def _differing(key: str, theirs: Any, ours: Any) -> list[str]:
    if isinstance(theirs, Expiring) and isinstance(ours, Expiring) and theirs.value != ours.value:
        return _differing(key, theirs.value, ours.value)
    if isinstance(theirs, dict) and isinstance(ours, dict):
        absent = "absent"
        return [
            f"{key} {field}: peer {theirs.get(field, absent)!r}, jobwire {ours.get(field, absent)!r}"
            for field in sorted(theirs.keys() | ours.keys())
            if theirs.get(field, absent) != ours.get(field, absent)
        ]
    if isinstance(theirs, list) and isinstance(ours, list) and key.endswith(":events"):
        rows = difflib.unified_diff(theirs, ours, "peer", "jobwire", lineterm="", n=2)
        return [f"{key}:", *(f"    {row}" for row in rows if not row.startswith(("---", "+++", "@@")))]
    return [f"{key}: peer {theirs!r}, jobwire {ours!r}"]
