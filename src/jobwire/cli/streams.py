"""The standard streams of the process, made fit for use before a command runs."""

from __future__ import annotations

import io
import os
import sys


def prepare() -> None:
    """Opens streams that the caller has closed, and lets every character be printed.

    A shell closes a stream with `<&-` or `>&-`. It is then empty: nothing can be read from it, and what is written is
    lost. Without this, the first file or socket that is opened takes the stream's number, and gets the output.

    Characters that the terminal's encoding does not have are printed as escapes.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        _open_if_closed(number)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - open until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")


def _open_if_closed(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)  # the lowest free number
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)
