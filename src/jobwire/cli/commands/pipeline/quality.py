"""The end of a command by the quality of the data: `--fail-on quality`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import typer


def end_by_quality(lake: str) -> None:
    """Ends the command if a check of data quality has failed, after a line for each of them on stderr."""
    from jobwire.cli.exit_codes import FAILED_CHECKS
    from jobwire.cli.output import complain, printable
    from jobwire.pipeline.history.failed_checks import failed_checks

    failed = failed_checks(lake)
    for check in failed:
        complain(printable(str(check)))
    if failed:
        raise typer.Exit(FAILED_CHECKS)
