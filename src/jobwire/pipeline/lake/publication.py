"""The step from one pointer of a table to the next."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.pointers import Part, Pointer
from jobwire.pipeline.lake.schemas import Columns

Replacing = Collection[str] | Callable[[str], bool] | None
"""The keys of the parts that a publication replaces, or what decides by a key. None: all of them."""


@dataclass(frozen=True)
class Staged:
    """Rows that are written and not yet published."""

    table: str
    columns: Columns
    run: str
    parts: Mapping[str, Part]
    onto: int | None
    """The generation of the pointer that they are to replace. None: any, since they are added to what is there."""

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts.values())


def next_pointer(staged: Staged, before: Pointer | None, replacing: Replacing, root: str, table_format: str) -> Pointer:
    """Returns the pointer with staged rows that follows another one. Refuses rows that were made for an older one."""
    generation = 0 if before is None else before.generation
    if staged.onto is not None and generation != staged.onto:
        raise JobwireError(
            f"{staged.table} in the lake at {root} was published by another run meanwhile"
            f"{'' if before is None else f' ({before.run})'}: run this one again"
        )
    kept: dict[str, Part] = {}
    if before is not None and replacing is not None:
        goes = replacing if callable(replacing) else replacing.__contains__
        kept = {key: part for key, part in before.parts.items() if not goes(key)}
    new = {key: replace(part, generation=part.generation or generation + 1) for key, part in staged.parts.items()}
    parts = dict(sorted((kept | new).items()))
    named = {part.folder for part in parts.values()}
    return Pointer(
        table=staged.table,
        format=table_format,
        columns=staged.columns.ddl,
        run=staged.run,
        published_at=datetime.now(UTC).isoformat(),
        generation=generation + 1,
        parts=parts,
        previous=[] if before is None else [folder for folder in before.folders if folder not in named],
        root=root,
    )
