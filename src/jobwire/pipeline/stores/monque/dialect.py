"""Monque for the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jobwire import embedded
from jobwire.backends.monque import rules
from jobwire.pipeline.stores.dialect import Colour, Dialect, EventWords, Levels, behind, field_of_data
from jobwire.pipeline.stores.ids import digest

if TYPE_CHECKING:
    from pyspark.sql import Column


class MonqueDialect(Dialect):
    """Has no priorities and no options of a job: jobs run by due time, and the rest is the instance's."""

    protocol = "monque"
    rules = rules.RULES
    colour = Colour("#6a9f3a", "#8cc35a")
    pause = "jobwire's workers keep to the pause; stop Node's, which know none"
    runs_by_due_time = True
    event_words: ClassVar[EventWords] = {
        "added": ("added",),
        "waiting": ("waiting",),
        "delayed": ("delayed", "rescheduled"),
        "started": ("active",),
        "progress": ("progress",),
        "completed": ("completed",),
        "failed": ("failed",),
        "retried": ("retried",),
        "stalled": ("stalled",),
        "cancelled": ("cancelled",),
        "removed": ("removed",),
    }

    copies: ClassVar[Mapping[str, str]] = {"data": "$"}

    def server(self, folder: Path) -> embedded.Server:
        return embedded.mongo(folder)

    def derived_id(self, given: str) -> str:
        return digest(given)

    def schedule_key(self, job: Mapping[str, Any], raw: Mapping[str, Any]) -> str | None:
        """A schedule is a job that repeats."""
        return (job["unique_key"] or job["id"]) if raw.get("repeatInterval") else None

    def describe_priorities(self, source: Dialect, levels: Levels) -> str:
        return "Monque has no priorities: jobs that are ready keep their order through due times 1 ms apart"

    def run_order(self) -> list[Column]:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        return [F.col("late"), F.col("run_at"), *behind()]

    def due_time(self) -> Column:
        return field_of_data("due").try_cast("timestamp")


DIALECT = MonqueDialect()
