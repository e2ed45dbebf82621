"""Rows of the tables `jobs` and `events`, field by field as the schemas have them. A test compares the two."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

Time = datetime | int
"""A moment, or microseconds since 1970."""


class JobRow(NamedTuple):
    """A row of schemas.JOBS."""

    store: str
    queue: str
    id: str
    name: str | None = None
    state: str | None = None
    native_state: str | None = None
    priority: int | None = None
    position: int | None = None
    attempts: int | None = None
    attempts_made: int | None = None
    payload: str | None = None
    result: str | None = None
    error: str | None = None
    stacktrace: str | None = None
    progress: str | None = None
    parent: str | None = None
    unique_key: str | None = None
    created_at: Time | None = None
    run_at: Time | None = None
    started_at: Time | None = None
    finished_at: Time | None = None
    worker: str | None = None
    raw: str | None = None
    fingerprint: str | None = None
    malformed: str | None = None


class EventRow(NamedTuple):
    """A row of schemas.EVENTS."""

    store: str
    queue: str
    id: str
    kind: str | None
    job_id: str | None
    at: Time | None
    data: str
    malformed: str | None = None
