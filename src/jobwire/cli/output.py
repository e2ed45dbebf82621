"""What commands print: results on stdout, remarks on stderr."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

_PIPE_WIDTH = 10_000
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def console() -> Console:
    """Stdout: fitted to a terminal, in colours; whole lines of plain text elsewhere, for grep and its like."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, soft_wrap=True, width=_PIPE_WIDTH)


def remark(sentence: str) -> None:
    """A line for the person at the keyboard, out of the way of what is piped on."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(sentence, style="dim"))


def emit(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(value, default=str) + "\n")


def printable(value: str) -> str:
    """Text that came from a queue, without the power to move the cursor or recolour the terminal.

    >>> printable("all fine\\x1b[2J")
    'all fine\\\\x1b[2J'
    """
    return _UNPRINTABLE.sub(lambda found: found.group().encode("unicode_escape").decode(), value)


def compact(value: Any) -> str:
    """A JSON value in one line."""
    return printable(json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str))
