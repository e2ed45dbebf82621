"""Checks ids of jobs: pg-boss takes UUIDs only."""

from __future__ import annotations

import uuid


def is_id(value: str) -> bool:
    """Returns True if the text is a UUID in PostgreSQL's usual form."""
    try:
        return str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False
