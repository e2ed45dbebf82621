"""The small files in which builds and tidying record how far they are."""

from __future__ import annotations

from jobwire.pipeline.lake.lake import Lake

MARKS = "checkpoints/build.json"
"""The time and the generation up to which the events and snapshots of each source were built."""
BUILT = "checkpoints/built.json"
"""The state of bronze before the last build that has ended."""
EXPIRED = "checkpoints/expired.json"
"""The day before which rows of bronze have expired."""


def expired_before(lake: Lake) -> str | None:
    """Returns the day before which rows of bronze have expired, such as `2026-01-31`. None if none has."""
    found = lake.files.read(EXPIRED)
    return None if found is None else found["before"]


def record_expired(lake: Lake, before: str) -> None:
    """Records that rows of bronze expire. Called before any is removed, so that a build does not miss them."""
    lake.files.write(EXPIRED, {"before": max(before, expired_before(lake) or "")})
