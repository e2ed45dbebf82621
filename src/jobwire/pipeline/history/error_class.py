"""Puts errors into few classes, as `jobwire.error_class` does, in Spark."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from jobwire.error_class import CLASS, LONGEST, SAYS_NOTHING, VARIABLE


def error_class(error: Column) -> Column:
    """Returns the name of the exception if the error begins with a specific one, else its message without the parts
    that vary: numbers become #, ids <id>.

    `ConnectionError: port 6379 refused` is a ConnectionError, `Error: user 17 is gone` an `Error: user # is gone`.
    """
    first_line = F.trim(F.substring_index(F.trim(error), "\n", 1))
    name = F.regexp_extract(first_line, CLASS, 1)
    message = first_line
    for pattern, stands_for in VARIABLE:
        message = F.regexp_replace(message, pattern, stands_for)
    says_something = (name != "") & ~name.isin(*SAYS_NOTHING)
    return F.when(says_something, F.substring(name, 1, LONGEST)).otherwise(F.substring(message, 1, LONGEST))
