"""Finds the object that a command line names, and reports a wrong one as a usage error."""

from __future__ import annotations

import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import typer

from jobwire.worker.target import BadTarget, BrokenModule
from jobwire.worker.target import load as find


def load(target: str) -> Any:
    """Returns the object that `module:object` or `./file.py:object` names."""
    with reported():
        return find(target)


@contextmanager
def reported() -> Generator[None]:
    """Turns a wrong target into a usage error. An error inside its module is printed with its traceback, for the author
    of the module."""
    try:
        yield
    except BadTarget as wrong:
        raise typer.BadParameter(str(wrong)) from None
    except BrokenModule as broken:
        traceback.print_exception(broken.__cause__)
        raise typer.Exit(1) from None
