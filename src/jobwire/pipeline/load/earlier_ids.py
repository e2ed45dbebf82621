"""Ids of rows whose types are inferred, as loads had them before the texts of a file identified its rows.

They depended on the types: one appended `1.5` gave each whole number of its column another id. Jobs that such a load
has added are recognised if the types are still the same. Their rows keep those ids, and are not added again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobwire import urls
from jobwire.pipeline.load.check import CHECKED
from jobwire.pipeline.stores.address import reached
from jobwire.pipeline.stores.boundary import open_store
from jobwire.pipeline.stores.dialect import dialect_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_earlier_ids(checked: DataFrame, url: str, queue: str) -> DataFrame:
    """Returns rows of CHECKED, with the earlier id where the queue holds a job that has it."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with reached(url) as reachable:
            address = urls.parse(reachable)
            dialect, store = dialect_of(address.protocol), open_store(address, queue, "")
            try:
                for batch in batches:
                    natives = [None if one is None else str(dialect.native_id(one)) for one in _texts(batch, "earlier")]
                    held = set(store.present([one for one in natives if one is not None]))
                    pairs = zip(_texts(batch, "id"), _texts(batch, "earlier"), natives, strict=True)
                    ids = pa.array([earlier if native in held else own for own, earlier, native in pairs], pa.string())
                    yield batch.set_column(batch.schema.get_field_index("id"), "id", ids)
            finally:
                store.close()

    return checked.mapInArrow(task, CHECKED.ddl)


def _texts(batch: pa.RecordBatch, column: str) -> list[Any]:
    return batch.column(column).to_pylist()
