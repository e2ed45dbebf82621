"""The names of a lake's tables in SQL, the same in DuckDB, in Spark's catalog and in exports.

>>> sql_name("gold/latency_hourly")
'gold_latency_hourly'
"""

from __future__ import annotations

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import Pointer, load
from jobwire.pipeline.lake.tables import ADDED_TO, BY_DAY, CAMPAIGNS_IN_ONE, DELIVERIES_BY_DAY, SUMMARIES

TABLES = (*BY_DAY, *DELIVERIES_BY_DAY, *SUMMARIES, *CAMPAIGNS_IN_ONE, *ADDED_TO)
"""The published tables by their paths in a lake."""
RUNS = "runs"
"""The run log, which is not a published table."""


def sql_name(table: str) -> str:
    """Returns the name in SQL of a table that is given by its path in the lake."""
    return table.replace("/", "_")


def published(root: str) -> dict[str, Pointer]:
    """Returns the pointers of the tables that have been published, by their names in SQL."""
    files = LakeFiles(root)
    found = {sql_name(table): load(files, table) for table in TABLES}
    pointers = {name: pointer for name, pointer in found.items() if pointer is not None}
    if not pointers:
        raise JobwireError(f"the lake at {root} has no tables yet: run `jobwire pipeline run` first")
    wrong = next((one for one in pointers.values() if one.format != "parquet"), None)
    if wrong is not None:
        raise JobwireError(
            f"{wrong.table} in the lake at {root} is kept as {wrong.format}, which only Spark reads here"
        )
    return pointers
