"""Puts errors into few classes, so that a thousand failures read as five causes."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

_LONGEST = 80
_CLASS = r"^((?:[A-Za-z_$][\w$]*[.:]{1,2})*[A-Z][\w$]*?(?:[a-z0-9][A-Z][\w$]*|Error|Exception|Timeout))(?::\s|:?$)"
"""A name with a capital in its middle, or one that ends as errors do, at the beginning and followed by a colon."""
_SAYS_NOTHING = ("Error", "Exception", "RuntimeError")
_VARIABLE = (
    (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
    (r"(?i)\b0x[0-9a-f]+\b", "<id>"),
    (r"(?i)\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b", "<id>"),
    (r"\d+(?:[.,:]\d+)*", "#"),
    (r"\s+", " "),
)


def error_class(error: Column) -> Column:
    """Returns the name of the exception if the error begins with a specific one, else its message without the parts
    that vary: numbers become #, ids <id>.

    `ConnectionError: port 6379 refused` is a ConnectionError, `Error: user 17 is gone` an `Error: user # is gone`.
    """
    first_line = F.trim(F.substring_index(F.trim(error), "\n", 1))
    name = F.regexp_extract(first_line, _CLASS, 1)
    message = first_line
    for pattern, stands_for in _VARIABLE:
        message = F.regexp_replace(message, pattern, stands_for)
    says_something = (name != "") & ~name.isin(*_SAYS_NOTHING)
    return F.when(says_something, F.substring(name, 1, _LONGEST)).otherwise(F.substring(message, 1, _LONGEST))
