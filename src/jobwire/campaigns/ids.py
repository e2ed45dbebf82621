"""Ids in the shape of a CUID: 25 lower-case letters and digits that begin with c and the time in milliseconds.

Statements that insert many rows make the second half in the database: `{next_id}` after the text of `id_prefix`.
"""

from __future__ import annotations

import secrets
import time

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
NEXT_ID = "lpad(to_hex(row_number() OVER ()), 6, '0') || right(gen_random_uuid()::text, 10)"
"""Sixteen hexadecimal digits, in SQL: the number of the row and ten random ones. Rows that lie beside each other in the
table then have neighbouring ids, so what walks the table by its ids reads each page once."""


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
