"""`jobwire pipeline doctor`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import LAKE, Conf, LakeRoot, Master, Stores, settings
from jobwire.cli.parameters import Json

if TYPE_CHECKING:
    from jobwire.pipeline.spark.doctor import Finding


def doctor(
    stores: Stores = None,
    *,
    lake: LakeRoot = LAKE,
    session: Annotated[
        bool, typer.Option("--session", metavar="", help="Also start Spark, and check that it finds the data source.")
    ] = False,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Check that Java, Spark, the stores and the lake can be used. The exit code is 1 if one can't.

    Spark is started with --session, or with --master or --conf, which are for it.
    """
    from rich.text import Text

    from jobwire import urls
    from jobwire.cli.output import console, emit, printable
    from jobwire.pipeline.spark.doctor import diagnose

    findings: list[Finding] = []
    starts = session or master is not None or bool(conf)
    given = stores or [urls.default_url()]
    for finding in diagnose(given, lake, session=starts, master=master, conf=settings(conf)):
        findings.append(finding)
        if not as_json:
            mark = Text("✓ ", "green") if finding.ok else Text("✗ ", "red")
            console().print(Text.assemble(mark, (f"{printable(finding.check)}: ", "bold"), printable(finding.detail)))
    if as_json:
        emit([asdict(finding) for finding in findings])
    raise typer.Exit(0 if all(finding.ok for finding in findings) else 1)
