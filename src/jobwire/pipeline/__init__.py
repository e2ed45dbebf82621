"""Live queues as Spark tables and streams, in and out: history, reports, archive, bulk load, moves between stores, and
workers as Spark tasks.

The commands of five rooms bear the rooms' names, and are found in them:

    from jobwire.pipeline.load import load
    from jobwire.pipeline.move import move, plan_move
    from jobwire.pipeline.archive import archive, restore
    from jobwire.pipeline.report.from_lake import report
    from jobwire.pipeline.work import work
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobwire.pipeline.archive.restore import restore
    from jobwire.pipeline.history.build import build
    from jobwire.pipeline.history.ingest import ingest
    from jobwire.pipeline.history.sources import find_sources
    from jobwire.pipeline.history.tidy import tidy
    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.lake.pointers import read_pointer, read_table
    from jobwire.pipeline.spark.session import spark_session

__all__ = ["Lake", "build", "find_sources", "ingest", "read_pointer", "read_table", "restore", "spark_session", "tidy"]

_HOMES = {
    "Lake": "lake.lake",
    "build": "history.build",
    "find_sources": "history.sources",
    "ingest": "history.ingest",
    "read_pointer": "lake.pointers",
    "read_table": "lake.pointers",
    "restore": "archive.restore",
    "spark_session": "spark.session",
    "tidy": "history.tidy",
}


def __getattr__(name: str) -> Any:
    """Imports the names above when they are asked for: most of them need Spark."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
