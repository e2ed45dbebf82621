"""Puts errors into few classes, as `jobwire.error_class` does, in Spark."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from jobwire.error_class import ANY_NAME, CLASS, LONGEST, PREFIX, PYTHON_STACK, STACK_LINE, VARIABLE


def error_class(error: Column, stack: Column | None = None) -> Column:
    """Returns the name of the exception if the error begins with a specific one or the stack has one for its message,
    else the message without the parts that vary: numbers become #, ids <id>.

    `ConnectionError: port 6379 refused` is a ConnectionError, `Error: user 17 is gone` a `user # is gone`.
    """
    name, message = _specific_class(error), _message(error)
    by_message = F.substring(message, 1, LONGEST)
    if stack is not None:
        line = F.coalesce(_exception_line(stack), F.lit(""))
        in_stack = _specific_class(line)
        same = message.isin(F.lit(""), _message(F.regexp_extract(line, r"^.*?:\s(.*)$", 1)), in_stack)
        by_message = F.when((in_stack != "") & same, in_stack).otherwise(by_message)
    return F.when(name != "", name).otherwise(by_message)


def error_of_stack(stack: Column) -> Column:
    """Returns the exception with its message, as a stack has it: of a Python stack at its end, of others in the first
    line."""
    first_or_last = F.when(_is_python(stack), F.substring_index(F.trim(stack), "\n", -1)).otherwise(_first_line(stack))
    return F.coalesce(_exception_line(stack), first_or_last)


def _exception_line(stack: Column) -> Column:
    lines = F.regexp_extract_all(stack, F.lit(STACK_LINE), 1)
    return F.get(lines, F.when(_is_python(stack), F.size(lines) - 1).otherwise(0))


def _is_python(stack: Column) -> Column:
    return stack.startswith(PYTHON_STACK)


def _specific_class(error: Column) -> Column:
    name = F.regexp_extract(_first_line(error), CLASS, 1)
    return F.when(name.isin(*ANY_NAME), "").otherwise(F.substring(name, 1, LONGEST))


def _message(error: Column) -> Column:
    message = F.regexp_replace(_first_line(error), PREFIX, "")
    for pattern, stands_for in VARIABLE:
        message = F.regexp_replace(message, pattern, stands_for)
    return message


def _first_line(error: Column) -> Column:
    return F.trim(F.substring_index(F.trim(error), "\n", 1))
