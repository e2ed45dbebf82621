"""Puts errors into few classes, so that a thousand failures read as five causes. Spark uses the same patterns."""

from __future__ import annotations

import re

LONGEST = 80
CLASS = r"^((?:[A-Za-z_$][\w$]*[.:]{1,2})*[A-Z][\w$]*?(?:[a-z0-9][A-Z][\w$]*|Error|Exception|Timeout))(?::\s|:?$)"
"""A name with a capital in its middle, or one that ends as errors do, at the beginning and followed by a colon."""
SAYS_NOTHING = ("Error", "Exception", "RuntimeError")
VARIABLE = (
    (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
    (r"(?i)\b0x[0-9a-f]+\b", "<id>"),
    (r"(?i)\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b", "<id>"),
    (r"\d+(?:[.,:]\d+)*", "#"),
    (r"\s+", " "),
)
"""Parts of messages that vary, and what stands for them."""


def error_class(error: str) -> str:
    """Returns the name of the exception if the error begins with a specific one, else its message without the parts
    that vary: numbers become #, ids <id>.

    >>> error_class("ConnectionError: port 6379 refused"), error_class("Error: user 17 is gone")
    ('ConnectionError', 'Error: user # is gone')
    """
    if name := specific_class(error):
        return name
    first_line = _first_line(error)
    for pattern, stands_for in VARIABLE:
        first_line = re.sub(pattern, stands_for, first_line)
    return first_line[:LONGEST]


def specific_class(error: str) -> str:
    """Returns the name of the exception that the error begins with, or an empty text.

    >>> specific_class("smtp.TimeoutError: after 3 s"), specific_class("Error: user 17 is gone")
    ('smtp.TimeoutError', '')
    """
    found = re.search(CLASS, _first_line(error))
    return "" if found is None or found[1] in SAYS_NOTHING else found[1][:LONGEST]


def _first_line(error: str) -> str:
    return error.strip().partition("\n")[0].strip()
