"""BullMQ for the pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jobwire import codec as json_codec
from jobwire import embedded
from jobwire.backends.bullmq import rules
from jobwire.backends.bullmq.codec import to_ms
from jobwire.backends.bullmq.work.stored_options import Kept, StoredBackoff, read_options
from jobwire.backoff import Backoff
from jobwire.errors import InvalidOption, MalformedPayload
from jobwire.options import Keep
from jobwire.pipeline.stores.dialect import Carried, Colour, Dialect, EventWords, Levels, time_in_data

if TYPE_CHECKING:
    from pyspark.sql import Column

_LOST = {"lifo": "lifo", "kl": "keepLogs", "stackTraceLimit": "stackTraceLimit"}
"""Options that a move has no place for, by their stored names."""


class BullDialect(Dialect):
    """Low numbers run first, 0 before all, so that its levels are 0 and below."""

    protocol = "bullmq"
    rules = rules.RULES
    colour = Colour("#aa3377", "#d36ba6")
    pause = "all of its workers keep to the pause, Node's too"
    keeps_creation_time = True
    reuses_ids = True  # numbers begin again after an obliterate
    delays_failed_runs = True
    event_words: ClassVar[EventWords] = {
        "added": ("added",),
        "waiting": ("waiting",),
        "delayed": ("delayed",),
        "started": ("active",),
        "progress": ("progress",),
        "completed": ("completed",),
        "failed": ("failed",),
        "stalled": ("stalled",),
        "removed": ("removed",),
        "paused": ("paused",),
        "resumed": ("resumed",),
    }
    outcome_members = ("returnvalue", "data")
    copies: ClassVar[Mapping[str, str]] = {"returnvalue": "result", "progress": "progress"}
    children_members = (":processed", ":failed")
    retried_from = ("active", "failed", "completed")  # it has no word for a retry: the job is waiting again

    def server(self, folder: Path) -> embedded.Server:
        return embedded.valkey(folder)

    def check_id(self, given: str) -> None:
        rules.check_id(given)

    def times(self, created: datetime | None, due: datetime | None) -> dict[str, Any]:
        """A delay is counted from the job's own time, to the millisecond, so that both are kept exactly."""
        if created is None:
            return super().times(created, due)
        times: dict[str, Any] = {"extra": {"timestamp": to_ms(created)}}
        if due is not None and (delay := to_ms(due) - to_ms(created)) > 0:
            times["delay"] = timedelta(milliseconds=delay)
        return times

    def carried(self, raw: Mapping[str, Any]) -> Carried:
        stored = raw.get("opts")
        if not isinstance(stored, str):
            return Carried({})
        found, written = read_options(stored.encode()), _object(stored)
        options: dict[str, Any] = {}
        lost = [name for option, name in _LOST.items() if written.get(option)]
        try:
            if found.backoff is not None:
                options["backoff"] = _backoff(found.backoff)
        except InvalidOption:
            lost.append("backoff")
        for name, kept in (("keep_completed", found.keep_completed), ("keep_failed", found.keep_failed)):
            try:
                if kept is not None:
                    options[name] = _keep(kept)
            except InvalidOption:
                lost.append(name)
        return Carried(options, lost)

    def schedule_key(self, job: Mapping[str, Any], raw: Mapping[str, Any]) -> str | None:
        return raw.get("rjk")

    def run_stacks(self) -> Column:
        """`raw` has the list, unless it is the one stack in the column."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        listed = F.from_json(F.get_json_object("raw", "$.stacktrace"), "array<string>")
        one = F.when(F.col("stacktrace").isNotNull(), F.array("stacktrace"))
        return F.when(self.of_store(), F.coalesce(listed, one))

    def crowded(self, levels: Levels) -> bool:
        return levels.top - levels.bottom > rules.MAX_PRIORITY

    def priority(self, level: int, levels: Levels) -> int:
        return levels.steps.get(level, levels.top - level)

    def describe_priorities(self, source: Dialect, levels: Levels) -> str:
        ordinary = self.priority(0, levels)
        later = f"; what had none has {ordinary} now: give new jobs that number, as 0 runs first"
        return f"the highest becomes 0 and lower ones count up from there{later if ordinary else ''}"

    def _order_of_level(self) -> list[Column]:
        """With both lists there, `paused` is the older one."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        return [F.col("native_state") != "paused"]

    def number_in_stream(self) -> Column:
        """An event's id is `<milliseconds>-<number>`."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        return F.when(self.of_store(), F.substring_index("id", "-", -1).try_cast("bigint"))

    def due_time(self) -> Column:
        return time_in_data("delay")


def _backoff(stored: StoredBackoff) -> Backoff:
    """Any type but the two built-in ones is the name of a strategy, which the worker supplies."""
    if stored.kind in ("fixed", "exponential"):
        return Backoff(stored.kind, stored.delay / 1000, stored.jitter)
    return Backoff.custom(stored.kind, stored.delay / 1000)


def _keep(stored: Kept) -> Keep:
    """A count below 0 keeps all, as no count does."""
    count, age = (float(text) if text else None for text in stored)
    if count is not None and count < 0:
        count = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a large count is the producer's decision, not the mover's
        return Keep(None if count is None else int(count), age)


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json_codec.loads(text)
    except MalformedPayload:
        return {}
    return value if isinstance(value, dict) else {}


DIALECT = BullDialect()
