"""Finds the days of gold that have to be made again.

A part of silver is a day, but its rows count on other days as well: a run counts when it started and when it ended, a
job when it was added. Each part has a list of those days (`Part.reaches`). Events count on their own day. When all of
gold is published, the parts of silver that it was made from are recorded, with their generations and days. A part that
differs from the record has changed, whichever build has changed it, also one that was interrupted. Gold changes on the
days that such a part reaches now, and on those that it reached before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.pointers import Part
from jobwire.pipeline.lake.tables import BY_DAY, GOLD_BY_DAY, REACHING, columns_of

_RECORD = "checkpoints/gold.json"


class GoldChanges:
    """The changes of silver since gold was made from it. `days` are those of gold to make again, sorted, and
    `silver_days` those of silver with rows that have changed; None stands for all of them."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._now = {name: _parts(lake, name) for name in BY_DAY}
        record: Mapping[str, Mapping[str, Any]] | None = lake.files.read(_RECORD)
        self.days = self._changed_days(record)
        self.silver_days = None if self.days is None or record is None else sorted(self._changed_parts(record))

    def parts(self, name: str) -> Sequence[str] | None:
        """Returns the parts of a table of silver with rows that count on these days; None stands for all of them."""
        if self.days is None:
            return None
        wanted = set(self.days)
        return [key for key, part in self._now[name].items() if not wanted.isdisjoint(part.reaches or ())]

    def record(self) -> None:
        """Records that gold was made from silver as it was found."""
        record = {
            name: {key: {"generation": part.generation, "reaches": part.reaches} for key, part in parts.items()}
            for name, parts in self._now.items()
        }
        self._lake.files.write(_RECORD, record)

    def _changed_days(self, record: Mapping[str, Mapping[str, Any]] | None) -> list[str] | None:
        pointers = {name: self._lake.pointer(name) for name in GOLD_BY_DAY}
        if record is None or any(one is None or one.columns != columns_of(name).ddl for name, one in pointers.items()):
            return None
        days = self._changed_parts(record, ["silver/events"])
        for name in REACHING:
            parts, before = self._now[name], record.get(name, {})
            for key in {*parts, *before}:
                part, old = parts.get(key), before.get(key)
                if part is not None and old is not None and part.generation == old["generation"]:
                    continue
                for reached in (None if part is None else part.reaches, None if old is None else old["reaches"]):
                    days.update(reached or ())
                if part is not None and part.reaches is None:
                    return None  # written by a release that did not list them
        return sorted(days)

    def _changed_parts(
        self, record: Mapping[str, Mapping[str, Any]], names: Collection[str] = tuple(BY_DAY)
    ) -> set[str]:
        days: set[str] = set()
        for name in names:
            now = {key: part.generation for key, part in self._now[name].items()}
            before = {key: part["generation"] for key, part in record.get(name, {}).items()}
            days.update(key for key in {*now, *before} if now.get(key) != before.get(key))
        return days


def _parts(lake: Lake, name: str) -> Mapping[str, Part]:
    pointer = lake.pointer(name)
    return {} if pointer is None else pointer.parts
