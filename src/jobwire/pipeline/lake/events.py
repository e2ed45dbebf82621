"""Bronze events: every batch of a stream becomes parts of a published table, one for each of its days.

Spark's own file sink is not used for Parquet. Its log has absolute paths: of a lake that was copied or moved, Spark
4.3 reads no row that was there before, without an error. And every tenth batch, the log lists all files that ever were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.schemas import BRONZE_EVENTS
from jobwire.pipeline.lake.tables import EVENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobwire.pipeline.lake.files import LakeFiles
    from jobwire.pipeline.lake.lake import Lake

_OLD_LOG = "_spark_metadata"


@dataclass(frozen=True)
class EventBatches:
    """Publishes the batches of one stream. Spark calls it; with Spark Connect, in a process of the server's.

    A batch that Spark repeats after a crash is published once: its parts have the number of the batch in their keys,
    beside the stream's id, which is another one if the checkpoint was deleted.
    """

    root: str
    folder: str
    run: str | None

    def __call__(self, rows: DataFrame, number: int) -> None:
        from jobwire.pipeline.lake.lake import Lake  # noqa: PLC0415 it imports this module

        lake = Lake(self.root)
        stream = lake.files.read(f"{checkpoint_of(self.folder)}/metadata")["id"]
        lake.add_events(self.folder, rows, self.run, f"{stream[:8]}.{number}")


def checkpoint_of(folder: str) -> str:
    """Returns the folder of a stream's offsets, by the folder of its events."""
    return f"checkpoints/events/{folder}"


def remove_unfinished(files: LakeFiles, folder: str) -> None:
    """Removes what a process has left that was killed while it recorded its first batch: a hidden file, with which
    Spark refuses to begin a stream."""
    offsets = f"{checkpoint_of(folder)}/offsets"
    if not files.files(offsets):
        files.remove(offsets)


def adopt(lake: Lake, spark: SparkSession, folder: str) -> None:
    """Publishes the events that an older release has written with Spark's file sink, once, and removes its files."""
    path = f"{EVENTS}/{folder}"
    found = _logged(lake.files, f"{path}/{_OLD_LOG}")
    if found is None:
        return
    last, names = found
    if names:
        reader = spark.read.schema(BRONZE_EVENTS.spark).option("basePath", lake.files.for_spark(path))
        rows = reader.parquet(*(lake.files.for_spark(f"{path}/{name}") for name in names))
        # The older release may have gone on with this lake since: then its last batch is another one.
        lake.add_events(folder, rows, None, f"adopted.{last}")
    lake.files.remove(f"{path}/{_OLD_LOG}")
    for day in lake.files.folders(path):
        if day.startswith("day="):
            lake.files.remove(f"{path}/{day}")


def _logged(files: LakeFiles, log: str) -> tuple[int, list[str]] | None:
    """Returns the last batch in the log of a sink, and the files that the log names, relative to the sink's folder.
    None if there is no log."""
    batches = {name: int(name.partition(".")[0]) for name in files.files(log)}
    if not batches:
        return None
    whole = max((number for name, number in batches.items() if name.endswith(".compact")), default=-1)
    found: dict[str, bool] = {}
    for name, number in sorted(batches.items(), key=lambda item: item[1]):
        if number < whole or (number == whole and not name.endswith(".compact")):
            continue
        version, *lines = (files.read_text(f"{log}/{name}") or "").splitlines()
        if version != "v1":
            raise JobwireError(f"{log}/{name} in the lake at {files.root} is of a form that is not known: {version!r}")
        for line in lines:
            entry: Any = orjson.loads(line)
            found["/".join(entry["path"].split("/")[-2:])] = entry["action"] == "add"
    return max(batches.values()), [name for name, is_there in found.items() if is_there]
