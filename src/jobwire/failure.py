"""Texts about the exception that a job failed with. It is the user's code: its `str()` may raise, and so may the name
of its class, its truth value and its attributes. Its message may have any length. No function here raises."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from jobwire.errors import JobwireError, class_name, shown

_HERE = Path(__file__).parent
_FOLDERS = (_HERE / "worker", _HERE / "tasks", _HERE / "testing", Path(asyncio.__file__).parent)
_OWN = tuple(f"{folder}/" for folder in _FOLDERS)
_LONGEST = 64 * 1024
"""Characters of a message or a stack that are kept. Readers need no more, and some stores refuse more."""
_NOT_FORMATTED = ", whose traceback can't be formatted"


def message_of(error: BaseException) -> str:
    """Returns the exception's message, or its class's name if it has none."""
    try:
        text = str.__str__(str(error))  # str() may return an object of a subclass of str
    except BaseException:
        return f"{kind_of(error)}, whose str() raises"
    return shortened(text) or kind_of(error)


def exit_text(leaving: Any) -> str:
    """Returns the message of a handler that has called sys.exit(), which ends that handler and not the worker."""
    try:
        return f"the handler called sys.exit({shown(leaving.code)})"
    except BaseException:  # a class of the user's own
        return "the handler called sys.exit()"


def kind_of(error: BaseException) -> str:
    """Returns the name of the exception's class."""
    return class_name(error)


def stack_of(error: BaseException) -> str:
    """Returns the traceback as text, with those of its causes."""
    try:
        return shortened("".join(traceback.format_exception(error)))
    except BaseException:
        return kind_of(error) + _NOT_FORMATTED


def begin_in_users_code(error: BaseException) -> None:
    """Takes the steps by which a worker has called the handler out of the tracebacks of an exception and its causes, so
    that they begin in the user's code. An error of jobwire's own that has no such code keeps no traceback, and a fault
    in jobwire keeps all of it. So does an exception whose attributes can't be read or set."""
    with contextlib.suppress(BaseException):
        _begin_in_users_code(error)


def _begin_in_users_code(error: BaseException) -> None:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        users = _from_users_code(one.__traceback__)
        if users is not None or issubclass(type(one), JobwireError):
            one.__traceback__ = users
        one = one.__context__ if one.__cause__ is None else one.__cause__


def _from_users_code(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN):
        trace = trace.tb_next
    return trace


def loggable(stack: str) -> bool:
    """Returns True if a log can take the traceback as Python prints it: if Python can print it, it is not too long, and
    it has no half of a surrogate pair, for which a log file in UTF-8 refuses the whole record."""
    if len(stack) > _LONGEST or stack.endswith(_NOT_FORMATTED):
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
