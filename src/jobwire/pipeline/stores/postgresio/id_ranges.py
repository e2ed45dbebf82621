"""Ranges of ids that part the rows of a table into slices of about one size.

The distribution of ids is unknown: random ones are even, jobwire's own grow with time, loaded ones are hashes. The
bounds are therefore taken from ids that exist, and compared by the server alone: it may sort texts by the rules of a
language.
"""

from __future__ import annotations

from jobwire.pipeline.stores.postgresio.database import Database

_SMALL = 2_000
"""Blocks of a table (16 MB) up to which all ids are read."""
_SAMPLED = 1_000
"""Blocks to read of a larger one. Rows of one block are neighbours in time, so blocks count, not rows."""
_ENOUGH = 50
"""Ids per range that a sample must have. If it has fewer, the wanted rows are a small part of the table, and all their
ids are read."""
_WORTH = 1_000
"""Rows that are worth a range of their own."""
_BOUNDS = """
SELECT count(*), percentile_disc($1::float8[]) WITHIN GROUP (ORDER BY j.id)::text[]
FROM {table} j {sample}
WHERE {condition}
"""

IdRange = tuple[str | None, str | None]
"""Ids from the first on, before the second. None leaves that side open."""


def id_ranges(database: Database, table: str, condition: str, parts: int) -> list[IdRange]:
    """Returns about `parts` ranges of the rows that the condition, on the table as `j`, lets through. The outer ends
    are open, for rows that are added there during the read."""
    [(blocks,)] = database.ask(
        "SELECT pg_relation_size($1::text::regclass) / current_setting('block_size')::int", [table]
    )
    count, bounds = 0, []
    if blocks > _SMALL:
        sample = f"TABLESAMPLE SYSTEM ({100 * _SAMPLED / blocks:.6f})"
        count, bounds = _bounds(database, table, condition, parts, sample)
    estimate = count * blocks // _SAMPLED
    if count < _ENOUGH * parts:
        estimate, bounds = _bounds(database, table, condition, parts, "")
    fewer = min(parts, max(1, estimate // _WORTH))
    marks = list(dict.fromkeys(bounds[number * parts // fewer - 1] for number in range(1, fewer)))
    return list(zip([None, *marks], [*marks, None], strict=True))


def _bounds(database: Database, table: str, condition: str, parts: int, sample: str) -> tuple[int, list[str]]:
    query = _BOUNDS.format(table=table, sample=sample, condition=condition)
    [(count, bounds)] = database.ask(query, [[number / parts for number in range(1, parts)]])
    return count, bounds or []
