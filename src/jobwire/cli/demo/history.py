"""The report at the end of the demo: the history of all four stores, with charts, made by Spark."""

# ruff: noqa: PLC0415 - Spark is an extra, and slow to import

from __future__ import annotations

import importlib
import importlib.util
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from jobwire.cli.commands.pipeline.stage import started
from jobwire.errors import JobwireError
from jobwire.pipeline.stores.address import reached, store_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.spark.progress import Progress

_LOOK_EVERY = 0.2


class History:
    """The stores of the demo as sources of the pipeline. Keeps their servers running until the report is written."""

    def __init__(self, folder: Path, sources: Sequence[tuple[str, str]]) -> None:
        self._folder = folder
        self._sources = sources

    @classmethod
    def begin(cls, stack: ExitStack, folder: Path, urls: Sequence[str]) -> History:
        """Opens the stores."""
        for old in ("lake", "report"):
            shutil.rmtree(folder / old, ignore_errors=True)
        return cls(folder, [(stack.enter_context(reached(url)), store_name(url)) for url in urls])

    def report(self, progress: Progress, *, spark_ready: Path | None = None) -> str:
        """Ingests, builds and draws the report. Returns the path of its page. Raises JobwireError if it can't be made.
        Waits for the file `spark_ready`, which the installation of Spark makes at its end."""
        if spark_ready is not None:
            _wait_for(spark_ready, progress)
        if importlib.util.find_spec("pyspark") is None:
            raise JobwireError("it needs more packages, pip install 'jobwire[spark]'")
        from jobwire.pipeline.history.build import build
        from jobwire.pipeline.lake.lake import Lake
        from jobwire.pipeline.report.from_lake import report
        from jobwire.pipeline.spark.session import SMALL

        lake = Lake(str(self._folder / "lake"))
        spark = started("local[*]", SMALL, progress)
        try:
            self._ingest(spark, lake, progress)
            progress("building the tables", 0, None)
            build(spark, lake)
        finally:
            spark.stop()
        progress("drawing the report", 0, None)
        return report(lake, self._folder / "report", title="The demo").path

    def _ingest(self, spark: SparkSession, lake: Lake, progress: Progress) -> None:
        """Ingests all stores. Raises JobwireError with the first error."""
        from jobwire.pipeline.history.ingest import Source, ingest

        taken = ingest(spark, lake, [Source(url, name) for url, name in self._sources], progress=progress)
        for source in taken.sources:
            if source.error:
                raise JobwireError(f"{source.store}: {source.error}")


def _wait_for(ready: Path, progress: Progress) -> None:
    """Waits until Spark is installed. `<ready>.failed` in its place states that it could not be."""
    failed = ready.with_name(ready.name + ".failed")
    while not ready.exists():
        if failed.exists():
            raise JobwireError(
                f"Spark could not be installed; pip's words are in {ready.with_name(ready.name + '.log')}"
            )
        progress("installing Spark for the report", 0, None)
        time.sleep(_LOOK_EVERY)
    importlib.invalidate_caches()
