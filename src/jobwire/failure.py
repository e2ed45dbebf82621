"""Texts about the exception that a job failed with. It is the user's code: its `str()` may raise, and its message may
have any length."""

from __future__ import annotations

import traceback

_LONGEST = 64 * 1024
"""Characters of a message or a stack that are kept. Readers need no more, and some stores refuse more."""


def message_of(error: BaseException) -> str:
    """Returns the exception's message, or its class's name if it has none."""
    try:
        text = str(error)
    except BaseException:
        return f"{kind_of(error)}, whose str() raises"
    return shortened(text) or kind_of(error)


def kind_of(error: BaseException) -> str:
    """Returns the name of the exception's class."""
    return type(error).__name__


def stack_of(error: BaseException) -> str:
    """Returns the traceback as text, with those of its causes."""
    try:
        return shortened("".join(traceback.format_exception(error)))
    except BaseException:
        return f"{kind_of(error)}, whose traceback can't be formatted"


def loggable(stack: str) -> bool:
    """Returns True if a log can take the traceback as Python prints it: if it is not too long, and has no half of a
    surrogate pair, for which a log file in UTF-8 refuses the whole record."""
    if len(stack) > _LONGEST:
        return False
    try:
        stack.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(text: str) -> str:
    """Returns the text with halves of surrogate pairs written as escapes."""
    return text.encode(errors="backslashreplace").decode()


def shortened(text: str) -> str:
    """Returns the text, without its middle if it is too long: the end of a stack and the start of a message matter
    most."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
