"""The report at the end of the demo: the history of all four stores, with charts, made by Spark."""

# ruff: noqa: PLC0415 - Spark is an extra, and slow to import

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobwire.pipeline.history.ingest import Source
    from jobwire.pipeline.spark.progress import Progress


class History:
    """The stores of the demo as sources of the pipeline. Keeps their servers running until the report is written."""

    def __init__(self, folder: Path, sources: Sequence[Source]) -> None:
        self._folder = folder
        self._sources = sources

    @classmethod
    def begin(cls, stack: ExitStack, folder: Path, urls: Sequence[str]) -> History | None:
        """Opens the stores. Returns None if the extra is not installed: the demo then ends without a report."""
        try:
            from jobwire.pipeline.history.ingest import Source
            from jobwire.pipeline.stores.address import reached, store_name
        except ImportError:
            return None
        for old in ("lake", "report"):
            shutil.rmtree(folder / old, ignore_errors=True)
        return cls(folder, [Source(stack.enter_context(reached(url)), store_name(url)) for url in urls])

    def report(self, progress: Progress) -> str:
        """Ingests, builds and draws the report. Returns the path of its page."""
        from jobwire.errors import JobwireError
        from jobwire.pipeline.history.build import build
        from jobwire.pipeline.history.ingest import ingest
        from jobwire.pipeline.lake.lake import Lake
        from jobwire.pipeline.report.from_lake import report
        from jobwire.pipeline.spark.session import SMALL, spark_session

        lake = Lake(str(self._folder / "lake"))
        progress("starting Spark", 0, None)
        spark = spark_session("local[*]", SMALL)
        try:
            taken = ingest(spark, lake, self._sources, progress=progress)
            for source in taken.sources:
                if source.error:
                    raise JobwireError(f"{source.store}: {source.error}")
            progress("building the tables", 0, None)
            build(spark, lake)
        finally:
            spark.stop()
        progress("drawing the report", 0, None)
        return report(lake, self._folder / "report", title="The demo").path
