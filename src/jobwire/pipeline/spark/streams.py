"""Starts streams of the data source, the first one of a process alone.

Spark 4.3 keeps one map of environment variables for all streams of a Python data source. Every stream that starts
writes the same half dozen entries into it, without a lock. Two first streams at once can leave a map that counts an
entry twice, and from then on no task with it can be serialised ("Illegal size 5 of collection, expected 6"), in any
session of that Java process. Once the entries are there, writing them again does no harm.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_LOOK_EVERY = 0.02


class StreamStarter:
    """Starts streams. While the first one has not read its first offsets or failed, others wait."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._first_has_begun = False

    def start(self, stream: DataStreamWriter) -> StreamingQuery:
        """Starts a stream and returns its query, which may have ended by then."""
        with self._lock:
            query = stream.start()
            while not self._first_has_begun:
                # A query that has read its first offsets reports a progress, also if there was nothing to read.
                self._first_has_begun = query.lastProgress is not None or not query.isActive
                time.sleep(_LOOK_EVERY)
            return query


STREAMS = StreamStarter()
"""The one of this process, which has at most one Java process."""
