"""The command line: `jobwire …` or `python -m jobwire …`.

`main` is the one place where an error becomes a sentence: what jobwire raises on purpose is printed on stderr without a
traceback, and the exit code is 1; a usage error is Typer's, and 2. Anything else is a fault of ours or of a handler's
module, and shows its traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jobwire.errors import JobwireError, MissingExtra


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (without the program's name) and return its exit code."""
    try:
        return _run(arguments)
    except JobwireError as error:
        return _complain(str(error))
    except ModuleNotFoundError as missing:
        name = missing.name or ""
        if name.partition(".")[0] in ("typer", "rich"):
            return _complain(str(MissingExtra("the command line", "cli")))
        raise
    except PermissionError as error:
        return _complain(f"no permission to use {error.filename}")


def _run(arguments: Sequence[str] | None) -> int:
    from jobwire.cli.app import app  # noqa: PLC0415 - needs packages of an extra

    try:
        app(args=arguments, prog_name="jobwire")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return 0


def _complain(sentence: str) -> int:
    sys.stderr.write(f"jobwire: {sentence}\n")
    return 1
