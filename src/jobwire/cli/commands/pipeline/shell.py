"""`jobwire pipeline shell`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import code
import sys
from contextlib import suppress
from typing import Any

from jobwire.cli.commands.pipeline.parameters import LAKE, Conf, Format, LakeRoot, Master, settings


def shell(lake: LakeRoot = LAKE, table_format: Format = "parquet", master: Master = None, conf: Conf = None) -> None:
    """Open a Python shell with `spark`, `lake` and a view of each table. Or run a program: shell < program.py."""
    from jobwire.cli.commands.pipeline.stage import session_when_needed, staged
    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.spark.views import create_views

    tables = Lake(lake, table_format)
    with staged(quiet=False) as progress:
        spark = session_when_needed(master, settings(conf), progress, tables)()
        views = create_views(spark, tables)
    names: dict[str, Any] = {"__name__": "__main__", "spark": spark, "lake": tables}
    if sys.stdin.isatty():
        _interact(names, views)
    else:
        exec(compile(sys.stdin.read(), "<stdin>", "exec"), names)  # noqa: S102 - the user's own program


def _interact(names: dict[str, Any], views: list[str]) -> None:
    with suppress(ImportError):  # Python may be built without it
        import readline
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
    banner = f'spark, lake, and views for spark.sql("…").show(): {", ".join(views)}\nCtrl-D ends the shell.'
    code.interact(banner, local=names, exitmsg="")
