"""Asks before something is done that can't be undone."""

from __future__ import annotations

import sys

from jobwire.cli.exit_codes import WrongUsage
from jobwire.cli.output import remark
from jobwire.errors import JobwireError


class NotConfirmed(JobwireError):
    """Nothing was done."""


def confirm(deed: str, *, yes: bool) -> None:
    """Returns if the user agrees. Raises WrongUsage if there is no terminal to ask at. `deed` is what would be done:
    "retry 42 jobs"."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise WrongUsage(f"nothing was done: stdin is not a terminal to ask at; add --yes to {deed}")
    sys.stderr.write(f"{deed[:1].upper()}{deed[1:]}? [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        remark("")
    if answer.strip().lower() not in ("y", "yes"):
        raise NotConfirmed
