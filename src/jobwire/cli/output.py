"""Output of commands: results on stdout, remarks on stderr."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

_PIPE_WIDTH = 10_000
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, separators of lines, marks that turn the direction of writing, and halves of characters."""


def console() -> Console:
    """Returns stdout as a console: in colours and fitted to a terminal, or else with whole lines of plain text, for
    grep."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, soft_wrap=True, width=_PIPE_WIDTH)


def remark(sentence: str) -> None:
    """Prints a line for people on stderr, so that it does not get into a pipe."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(sentence, style="dim"))


def complain(sentence: str) -> None:
    """Prints an error on stderr, for a command that goes on after it."""
    sys.stderr.write(f"jobwire: {sentence}\n")


def emit(value: Any) -> None:
    """Writes one JSON document to stdout, as a line that a reader gets at once."""
    say(json.dumps(value, default=str))


def say(line: str) -> None:
    """Writes a line to stdout that a reader gets at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def live() -> Live:
    """Returns a display at the terminal that is drawn in place."""
    return Live(console=console(), auto_refresh=False)


def printable(value: str) -> str:
    """Returns text from a queue as one line, with its control characters escaped, so that it can't control the terminal
    or look like two lines.

    >>> printable("all fine\\x1b[2J"), printable("two\\nlines")
    ('all fine\\\\x1b[2J', 'two\\\\nlines')
    """
    return _UNPRINTABLE.sub(lambda found: found.group().encode("unicode_escape").decode(), value)


def printable_lines(value: str) -> str:
    """Returns text from a queue with its line breaks and tabs as they are, and everything else as `printable` has it.

    >>> printable_lines("Traceback\\n\\tmail.py\\x1b[2J")
    'Traceback\\n\\tmail.py\\\\x1b[2J'
    """
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in value.split("\n"))


def compact(value: Any) -> str:
    """Returns a JSON value as one line."""
    return printable(json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str))
