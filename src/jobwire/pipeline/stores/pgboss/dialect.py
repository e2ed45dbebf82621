"""pg-boss for the pipeline."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jobwire import embedded
from jobwire.backends.pgboss import rules
from jobwire.backoff import Backoff
from jobwire.errors import InvalidOption
from jobwire.pipeline.stores.dialect import Carried, Colour, Dialect, EventWords, Levels, field_of_data

if TYPE_CHECKING:
    from pyspark.sql import Column

_USUAL_TIMEOUT = 900
"""Seconds, the default of a queue. It is written into every job, so it is not an option of one."""

_UUID_DIGITS = 32


class PgBossDialect(Dialect):
    """High numbers run first: a level is the number itself. Jobs of one level run in the order of their creation."""

    protocol = "pgboss"
    rules = rules.RULES
    colour = Colour("#117a8b", "#3fb3c6")
    pause = "jobwire's workers keep to the pause; stop Node's, which know none"
    cron_seconds = False
    event_words: ClassVar[EventWords] = {
        "added": ("created",),
        "started": ("active",),
        "completed": ("completed",),
        "failed": ("failed",),
        "retried": ("retry",),
        "stalled": ("stalled",),
        "cancelled": ("cancelled",),
    }

    copies: ClassVar[Mapping[str, str]] = {"output": "result"}

    def server(self, folder: Path) -> embedded.Server:
        return embedded.postgres(folder)

    def native_id(self, given: str) -> str:
        """One UUID can be written in several ways; PostgreSQL shows one of them."""
        if len(given) < _UUID_DIGITS:
            return self.derived_id(given)
        try:
            return str(uuid.UUID(given))
        except ValueError:
            return self.derived_id(given)

    def derived_id(self, given: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, given))

    def carried(self, raw: Mapping[str, Any]) -> Carried:
        exponential = raw.get("retry_backoff") is True
        delay, timeout = _number(raw.get("retry_delay")), _number(raw.get("expire_seconds"))
        options: dict[str, Any] = {}
        lost: list[str] = []
        if delay or exponential:
            try:
                options["backoff"] = (
                    # pg-boss waits at least a second before it doubles.
                    Backoff.exponential(max(delay, 1.0), cap=_number(raw.get("retry_delay_max")) or None)
                    if exponential
                    else Backoff.fixed(delay)
                )
            except InvalidOption:
                lost.append("backoff")
        if timeout and timeout != _USUAL_TIMEOUT:
            options["timeout"] = timeout
        return Carried(options, lost)

    def priority(self, level: int, levels: Levels) -> int:
        return level

    def describe_priorities(self, source: Dialect, levels: Levels) -> str:
        if source.rules.capabilities.priority == "low_first":
            return "numbers change their sign: what ran before still does"
        return "the front class becomes 1, the other 0"

    def _order_of_level(self) -> list[Column]:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        return [F.col("created_at")]

    def number_in_stream(self) -> Column:
        """A run may be claimed in the transaction that failed the one before, and so at the same moment."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        return F.when(self.of_store(), field_of_data("retry_count").try_cast("bigint"))

    def run_number(self) -> Column:
        """It counts from 0."""
        return field_of_data("retry_count").try_cast("int") + 1

    def ready_time(self) -> Column:
        return field_of_data("ready").try_cast("timestamp")

    def due_time(self) -> Column:
        return field_of_data("start_after").try_cast("timestamp")


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


DIALECT = PgBossDialect()
