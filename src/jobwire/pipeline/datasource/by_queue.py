"""Separates rows of several queues that a store reads as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa


def by_queue(
    batches: Iterator[pa.RecordBatch], queues: Sequence[str], *, apart: bool
) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
    """Yields the rows of each queue. If they need not be apart, all of them with the name of the first queue."""
    if len(queues) == 1 or not apart:
        yield queues[0], batches
        return
    for batch in batches:
        names = cast("list[str]", batch.column("queue").to_pylist())
        for queue in dict.fromkeys(names):
            yield queue, iter([batch.filter(pa.array([name == queue for name in names]))])
