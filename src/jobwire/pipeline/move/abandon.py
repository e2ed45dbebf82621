"""Gives up a move while the source still has every job."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from jobwire.boundary import Acted
from jobwire.errors import JobwireError
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.move.journal import Journal
from jobwire.pipeline.move.route import Route
from jobwire.pipeline.move.running_move import RunningMove
from jobwire.pipeline.spark.progress import Progress, silent
from jobwire.pipeline.stores.blocking import blocking_backend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHUNK = 500


def abandon_move(
    spark: SparkSession,
    lake: Lake,
    source: str,
    target: str,
    queue: str,
    *,
    to_queue: str | None = None,
    progress: Progress = silent,
) -> int:
    """Removes the copies of an interrupted move from the target and lets both queues run as before. Returns the number
    of copies removed.

    Refused once the cut-over has begun: from then on a move can only be completed.
    """
    route = Route(source, target, queue, to_queue or queue)
    with lake.files.locked(route.name), blocking_backend(source) as here, blocking_backend(target) as there:
        journal = Journal.found(route.name, lake)
        if journal is None:
            raise JobwireError(f"no move of {queue!r} from {route.from_store} to {route.to_store} is under way")
        if journal.reached("verified"):
            raise JobwireError(f"the move of {queue!r} is being cut over already: give the command again to end it")
        running = RunningMove(spark, route, lake, here, there, journal, progress)
        removed = 0
        with lake.run("abandon move", store=route.from_store, queue=queue) as record:
            if journal.reached("copying"):
                for ids in _copies(running):
                    answers = there.ask(there.backend.remove(route.to_queue, ids))
                    removed += sum(answer is Acted.DONE for answer in answers)
                    progress("remove copies", removed, journal.moving)
            record.rows_out = removed
            release(running)
    return removed


def release(running: RunningMove) -> None:
    """Resumes both queues, unless they were paused before the move, and removes the journal."""
    route, journal = running.route, running.journal
    if not journal.source_was_paused:
        running.here.ask(running.here.pause.resume(route.queue))
    if not journal.target_was_paused:
        running.there.ask(running.there.pause.resume(route.to_queue))
    journal.end(running.lake)


def _copies(running: RunningMove) -> Iterator[list[str]]:
    rows = running.manifest().select("target").toLocalIterator(prefetchPartitions=True)
    while chunk := [row["target"] for row in islice(rows, _CHUNK)]:
        yield chunk
