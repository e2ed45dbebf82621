"""BridgeMQ for the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jobwire import embedded
from jobwire.backends.bridgemq import codec, rules
from jobwire.backends.bridgemq.keys import check_job_id
from jobwire.errors import InvalidOption
from jobwire.pipeline.stores.dialect import Carried, Colour, Dialect, EventWords, Levels, time_in_data

if TYPE_CHECKING:
    from pyspark.sql import Column

_LOST = ("target", "rateLimit", "metadata")
_LOST_OF_RETRY = ("skipOn", "rerouteOn")


class BridgeDialect(Dialect):
    """Has two classes of priority, levels 1 and 0. The front class is pushed to the head of the list."""

    protocol = "bridgemq"
    rules = rules.RULES
    colour = Colour("#ccaa33", "#d9bd55")
    pause = "jobwire's workers keep to the pause; stop the others"
    newest_first_above_zero = True
    event_words: ClassVar[EventWords] = {
        "added": ("created",),
        "started": ("claimed",),
        "completed": ("completed",),
        "failed": ("failed", "dead"),
        "retried": ("retried",),
    }

    outcome_members = ("result",)
    copies: ClassVar[Mapping[str, str]] = {"progress": "progress"}

    def server(self, folder: Path) -> embedded.Server:
        return embedded.valkey(folder)

    def check_id(self, given: str) -> None:
        check_job_id(given)

    def carried(self, raw: Mapping[str, Any]) -> Carried:
        document = codec.mapping(raw.get("job"))
        retry = codec.mapping(document.get("retry"))
        options: dict[str, Any] = {}
        lost = [name for name in _LOST if document.get(name)] + [name for name in _LOST_OF_RETRY if retry.get(name)]
        try:
            if (backoff := codec.backoff_of(document)) is not None:
                options["backoff"] = backoff
        except InvalidOption:
            lost.append("backoff")
        timeout = codec.timeout_of(document)
        if timeout is not None:
            options["timeout"] = timeout
        return Carried(options, lost)

    def schedule_key(self, job: Mapping[str, Any], raw: Mapping[str, Any]) -> str | None:
        document = codec.mapping(raw.get("job"))
        if job["native_state"] != "cron" and "cron" not in codec.mapping(document.get("schedule")):
            return None
        return codec.schedule_key(job["id"], document)

    def priority(self, level: int, levels: Levels) -> int:
        return codec.FRONT_FROM if level > 0 else codec.DEFAULT_PRIORITY

    def describe_priorities(self, source: Dialect, levels: Levels) -> str:
        return (
            "BridgeMQ has two classes: what is above 0 goes to the front class, all else to the other; the jobs keep "
            "their order, but later ones of one class run behind them"
        )

    def number_in_stream(self) -> Column:
        """A run may be claimed by the script that failed the one before, and so at the same moment."""
        return self.run_number().cast("bigint")

    def run_number(self) -> Column:
        """An event's id is `<job>:<run>:<kind>:<milliseconds>`."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        in_id = F.substring_index(F.substring_index("id", ":", -3), ":", 1)
        return F.when(self.of_store(), in_id.try_cast("int"))

    def ready_time(self) -> Column:
        return time_in_data("ready")

    def due_time(self) -> Column:
        return time_in_data("delay")


DIALECT = BridgeDialect()
