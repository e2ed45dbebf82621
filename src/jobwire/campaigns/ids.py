"""Ids in the shape of a CUID: 25 lower-case letters and digits that begin with c and the time in milliseconds.

Statements that insert many rows make the random half in the database: `{random_id}` after the text of `id_prefix`.
"""

from __future__ import annotations

import secrets
import time

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
RANDOM_ID = "left(gen_random_uuid()::text, 4) || right(gen_random_uuid()::text, 12)"
"""Sixteen random hexadecimal digits, in SQL. A subquery would be evaluated once for all rows."""


def id_prefix(seconds: float | None = None) -> str:
    """Returns the first nine characters of an id made now, or at the given Unix time.

    >>> id_prefix(1_700_000_000)
    'cloyw3v28'
    """
    number = int((time.time() if seconds is None else seconds) * 1000)
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return "c" + text.rjust(8, "0")[-8:]


def new_id() -> str:
    """Returns an id that no other row has."""
    return id_prefix() + secrets.token_hex(8)
