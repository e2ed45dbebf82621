"""Names of campaigns, templates and batches."""

from __future__ import annotations

from typing import Any

from jobwire import checks
from jobwire.errors import InvalidOption

LONGEST_NAME = 200


def checked_name(field: str, name: Any) -> str:
    """Returns a new name. Refuses an empty one, one that is too long, and one that breaks lines.

    >>> checked_name("name", "spring")
    'spring'
    """
    if len(checks.text(field, name)) > LONGEST_NAME:
        raise InvalidOption(field, name, f"must have at most {LONGEST_NAME} characters")
    if any(character < " " for character in name):
        raise InvalidOption(field, name, "must not contain control characters")
    return name
