"""`jobwire pipeline lineage`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import LAKE, LakeRoot

_MARK = "checkpoints/lineage.json"


def lineage(
    *,
    since_last: Annotated[
        bool,
        typer.Option(
            "--since-last", metavar="", help="Only what no earlier call with it has printed.", show_default=False
        ),
    ] = False,
    namespace: Annotated[str, typer.Option(metavar="NAME", help="The namespace of the jobs.")] = "jobwire",
    lake: LakeRoot = LAKE,
) -> None:
    """Print the runs of the run log as events of OpenLineage, a line of JSON for each."""
    from jobwire.cli.output import emit
    from jobwire.pipeline.lake.files import LakeFiles
    from jobwire.pipeline.lake.run_log import read_runs
    from jobwire.pipeline.lineage.events import run_events

    files = LakeFiles(lake)
    printed = set[str](files.read(_MARK) or ()) if since_last else set[str]()
    known = read_runs(lake)
    found = [*run_events(lake, [run for run in known if run["run"] not in printed], namespace)]
    for run in found:
        for event in run.events:
            emit(event)
    if since_last and found:
        # Only now: a reader that was lost in the middle gets them again.
        printed |= {run.run for run in found if run.ended}
        files.write(_MARK, sorted(printed & {run["run"] for run in known}))
