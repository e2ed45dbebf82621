"""Separates rows of several queues that a store reads as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc


def by_queue(
    batches: Iterator[pa.RecordBatch], queues: Sequence[str], *, apart: bool
) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
    """Yields the rows of each queue. If they need not be apart, all of them with the name of the first queue."""
    if len(queues) == 1 or not apart:
        yield queues[0], batches
        return
    for batch in batches:
        names = batch.column("queue")
        for queue in cast("list[str]", pc.unique(names).to_pylist()):
            yield queue, iter([batch.filter(pc.equal(names, queue))])
