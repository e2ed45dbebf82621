"""Texts about an exception that a job failed with. The exception is the user's: its `str()` may raise, and its message
may be of any length."""

from __future__ import annotations

import traceback

_LONGEST = 64 * 1024
"""Characters of a message or a stack that are kept: more is of no use to a reader, and some stores refuse it."""


def message_of(error: BaseException) -> str:
    """The exception's message; its class's name if it has none."""
    try:
        text = str(error)
    except BaseException:
        return f"{kind_of(error)}, whose str() raises"
    return shortened(text) or kind_of(error)


def kind_of(error: BaseException) -> str:
    """The name of the exception's class."""
    return type(error).__name__


def stack_of(error: BaseException) -> str:
    """The traceback as text, with those of its causes."""
    try:
        return shortened("".join(traceback.format_exception(error)))
    except BaseException:
        return f"{kind_of(error)}, whose traceback can't be formatted"


def loggable(stack: str) -> bool:
    """True if a log can take the traceback as Python prints it: of a sensible length, and without half characters,
    which a log file in UTF-8 refuses together with the whole record."""
    if len(stack) > _LONGEST:
        return False
    try:
        stack.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(text: str) -> str:
    """The text with half characters written as escapes."""
    return text.encode(errors="backslashreplace").decode()


def shortened(text: str) -> str:
    """The text without its middle if it is too long: the end of a stack and the start of a message matter most."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
