"""Puts errors into few classes, so that a thousand failures read as five causes. Spark uses the same patterns.

Some stores keep an error with the name of its exception, some keep the message alone and the name in the stack. The
class is the same for both: the bare name, without modules, or the message if the name is one that any error may have.
"""

from __future__ import annotations

import re

LONGEST = 80
_MODULES = r"(?:[A-Za-z_$][\w$]*[.:]{1,2})*"
_NAME = r"[A-Z][\w$]*?(?:[a-z0-9][A-Z][\w$]*|Error|Exception|Timeout)"
CLASS = rf"^{_MODULES}({_NAME})(?::\s|:?$)"
"""A name with a capital in its middle, or one that ends as errors do, at the beginning and followed by a colon."""
ANY_NAME = ("Error", "Exception", "RuntimeError", "Unrecoverable", "UnrecoverableError")
"""Names that any error may have. The last two only state that no attempt follows, in Python and in Node.js."""
PREFIX = rf"^(?:{'|'.join(ANY_NAME)}):\s+"
STACK_LINE = rf"(?m)^({_MODULES}{_NAME}(?::\s[^\n]*)?):?$"
"""The line of a stack that has the exception and its message."""
PYTHON_STACK = "Traceback "
"""Python's stacks end with the exception, others begin with it."""
VARIABLE = (
    (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
    (r"(?i)\b0x[0-9a-f]+\b", "<id>"),
    (r"(?i)\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b", "<id>"),
    (r"\d+(?:[.,:]\d+)*", "#"),
    (r"\s+", " "),
)
"""Parts of messages that vary, and what stands for them."""


def error_class(error: str, stack: str = "") -> str:
    """Returns the name of the exception if the error begins with a specific one or the stack has one for its message,
    else the message without the parts that vary: numbers become #, ids <id>.

    >>> error_class("ConnectionError: port 6379 refused"), error_class("Error: user 17 is gone")
    ('ConnectionError', 'user # is gone')
    >>> error_class("Unrecoverable: no address"), error_class("no address", "jobwire.errors.Unrecoverable: no address")
    ('no address', 'no address')
    >>> error_class("port 6379 refused", "redis.exceptions.ConnectionError: port 6379 refused\\n    at connect")
    'ConnectionError'
    """
    if name := specific_class(error):
        return name
    message = _message(error)
    line = exception_line(stack)
    if (name := specific_class(line)) and message in ("", _message(line.partition(": ")[2]), name):
        return name
    return message[:LONGEST]


def specific_class(error: str) -> str:
    """Returns the name of the exception that the error begins with, or an empty text.

    >>> specific_class("smtp.TimeoutError: after 3 s"), specific_class("Error: user 17 is gone")
    ('TimeoutError', '')
    """
    found = re.search(CLASS, _first_line(error))
    return "" if found is None or found[1] in ANY_NAME else found[1][:LONGEST]


def exception_line(stack: str) -> str:
    """Returns the line of a stack that has the exception: of a Python stack the last one that looks like it, of others
    the first.

    >>> exception_line("Traceback (most recent call last):\\n  File 'a.py', line 1\\nValueError: no\\nmore of it")
    'ValueError: no'
    """
    lines = re.findall(STACK_LINE, stack)
    return "" if not lines else lines[-1 if stack.startswith(PYTHON_STACK) else 0]


def _message(error: str) -> str:
    """Returns the first line without a name that any error may have, and without the parts that vary."""
    text = re.sub(PREFIX, "", _first_line(error))
    for pattern, stands_for in VARIABLE:
        text = re.sub(pattern, stands_for, text)
    return text


def _first_line(error: str) -> str:
    return error.strip().partition("\n")[0].strip()
