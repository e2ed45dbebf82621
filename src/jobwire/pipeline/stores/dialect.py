"""The differences between protocols, as far as they matter to the pipeline.

Everything above `stores/` asks a dialect instead of comparing names, so a further protocol is one more folder here. A
dialect is built on the rules and the codec of the protocol's backend: what the backend decides is not decided again.
It needs no driver and no server. Methods that return columns need Spark.

Priorities are compared by level: a job of a higher level runs earlier, and 0 is the level of a job without a priority.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from jobwire.backends.rules import Rules
from jobwire.checks import text
from jobwire.embedded import Server
from jobwire.errors import InvalidOption
from jobwire.options import NewJob, NewSchedule
from jobwire.pipeline.stores.ids import digest

if TYPE_CHECKING:
    from pyspark.sql import Column

EventWords = Mapping[str, Collection[str]]
_ANY_QUEUE = "queue"


class Colour(NamedTuple):
    """A protocol's colour in reports, on a light page and on a dark one."""

    light: str
    dark: str


class Carried(NamedTuple):
    """The options in a job's native fields that a move keeps, and those that it loses."""

    options: dict[str, Any]
    """Keywords of NewJob."""
    lost: Sequence[str] = ()
    """Names of options that jobwire has no word for, or whose value it refuses."""


@dataclass(frozen=True)
class Levels:
    """The levels of the jobs that are moved. `steps` holds the number of each one where the plain rule has no room."""

    top: int = 0
    bottom: int = 0
    steps: Mapping[int, int] = field(default_factory=dict[int, int])


class Dialect(ABC):
    """One protocol, as the pipeline needs it. Has no state: one object serves the whole process."""

    protocol: ClassVar[str]
    """Its name in URLs."""
    rules: ClassVar[Rules]
    colour: ClassVar[Colour]
    pause: ClassVar[str]
    """Which workers take no jobs from a paused queue, and what an operator has to do about the others."""
    cron_seconds: ClassVar[bool] = True
    """A cron expression may have a sixth field, for seconds."""
    keeps_creation_time: ClassVar[bool] = False
    """A job can be added with the time at which it was created elsewhere."""
    runs_by_due_time: ClassVar[bool] = False
    """Jobs that are ready run in the order of their due times, and nothing else can order them."""
    newest_first_above_zero: ClassVar[bool] = False
    """Of the jobs with a level above 0, the one that was added last runs first."""

    reuses_ids: ClassVar[bool] = False
    """A queue that was emptied may give the same ids again, so two jobs in its history can have one id."""
    delays_failed_runs: ClassVar[bool] = False
    """An event `delayed` after a start means that the run failed. Elsewhere the job was handed back unharmed."""
    event_words: ClassVar[EventWords]
    """The protocol's own words for each kind of event in the silver tables."""
    outcome_members: ClassVar[Collection[str]] = ()
    """Members of an event's data that hold what a job returned, or the progress that it reported."""
    copies: ClassVar[Mapping[str, str]] = {}
    """Members of `raw` that hold the payload (`$`), `result` or `progress` once more, with the document that they hold.
    A job can be restored without them."""
    children_members: ClassVar[Collection[str]] = ()
    """Members of `raw` that hold the outcomes of a job's children, by keys that end with `:<queue>:<id>`."""
    retried_from: ClassVar[Collection[str]] = ()
    """An event `waiting` whose field `prev` is one of these means that the job is tried again."""

    @abstractmethod
    def server(self, folder: Path) -> Server:
        """Returns the embedded server of a folder, not started yet."""

    # --- jobs that are written ----------------------------------------------------------------------------------

    def takes_id(self, given: str) -> bool:
        """Returns whether a job can be added with this id."""
        try:
            self.check_id(text("id", given))
        except InvalidOption:
            return False
        return True

    def check_id(self, given: str) -> None:
        """Raises InvalidOption for an id that the protocol refuses."""
        self.rules.check(_ANY_QUEUE, NewJob(None, id=given))

    def native_id(self, given: str) -> str:
        """Returns the given id if the protocol takes it, else one that is derived from it, always the same."""
        return given if self.takes_id(given) else self.derived_id(given)

    def derived_id(self, given: str) -> str:
        """Returns an id that the protocol takes for any text."""
        return f"jw-{digest(given)}"

    def id_of_moved(self, store: str, queue: str, own: str, created: datetime | None) -> str:
        """Returns the id that a job of another store has here: its own if it can, else one derived from where it
        comes from."""
        if self.native_id(own) == own:
            return own
        # A queue that was emptied may number its jobs from 1 again: the time tells the two apart.
        moment = "" if created is None else str(round(created.timestamp() * 1000))
        return self.native_id(digest(store, queue, own, moment))

    def times(self, created: datetime | None, due: datetime | None) -> dict[str, Any]:
        """Returns the keywords of NewJob for a job that was created elsewhere and is due then; None: at once."""
        return {} if due is None else {"run_at": due}

    def check_schedule(self, new: NewSchedule) -> None:
        """Raises InvalidOption for a schedule that the protocol would store and not keep."""
        if not self.cron_seconds and new.cron and len(fields := new.cron.split()) > 5 and fields[0] != "0":
            raise InvalidOption("cron", new.cron, "must not have seconds: the finest step here is a minute")

    # --- jobs that are read -------------------------------------------------------------------------------------

    def carried(self, raw: Mapping[str, Any]) -> Carried:
        """Returns the options in the column `raw` of the table `jobs`."""
        return Carried({})

    def schedule_key(self, job: Mapping[str, Any], raw: Mapping[str, Any]) -> str | None:
        """Returns the key of the schedule that a row of `jobs` was made by, or that it is; None: it has none."""
        return None

    def run_stacks(self) -> Column | None:
        """Returns the stacks of a job's failed runs, oldest first, from a row of `jobs`; null in rows of other stores.
        None: the store keeps the last one alone."""
        return None

    # --- order --------------------------------------------------------------------------------------------------

    def level(self, priority: int | None) -> int:
        """Returns the level of a native priority."""
        usual = self.rules.capabilities.default_priority
        return self.rules.rank(usual)[0] - self.rules.rank(usual if priority is None else priority)[0]

    def crowded(self, levels: Levels) -> bool:
        """Returns whether there are too few native priorities to tell these levels apart by their distance."""
        return False

    def priority(self, level: int, levels: Levels) -> int | None:
        """Returns the native priority of a level, or None if the protocol has no priorities."""
        return None

    @abstractmethod
    def describe_priorities(self, source: Dialect, levels: Levels) -> str:
        """Returns, in a sentence, what becomes of priorities of the source here."""

    def run_order(self) -> list[Column]:
        """Returns sort keys that put rows of `jobs`, with `late` and `level`, in the order in which they would run:
        those that are ready first, then those that are due later by their time."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        late, due = F.col("late"), F.when(F.col("late"), F.col("run_at"))
        return [late, due, -F.col("level"), *self._order_of_level(), *behind()]

    def _order_of_level(self) -> list[Column]:
        """Returns sort keys for jobs of one level that come before their position."""
        return []

    # --- events -------------------------------------------------------------------------------------------------

    def of_store(self) -> Column:
        """Returns whether a row comes from a store of this protocol, by its column `store`."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        return F.col("store").startswith(self.protocol)

    def number_in_stream(self) -> Column | None:
        """Returns the number that orders events of one moment, null in rows of other stores. None: there is none."""
        return None

    def run_number(self) -> Column | None:
        """Returns the number, from 1, of the run that an event started; null where the event does not hold it."""
        return None

    def ready_time(self) -> Column | None:
        """Returns when a run could have begun, as the event of its start has it; null where it does not hold that."""
        return None

    @abstractmethod
    def due_time(self) -> Column:
        """Returns when the job of an event may run, as the event has it; null where it has no such time."""


def behind() -> list[Column]:
    """Returns the sort keys of rows of `jobs` that nothing else orders."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    return [F.col("position"), F.col("created_at"), F.col("id")]


def field_of_data(name: str) -> Column:
    """Returns a field of an event's `data` as a text; null where there is none."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    return F.get_json_object("data", f"$.{name}")


def time_in_data(name: str) -> Column:
    """Returns the timestamp of a field of an event's `data` that holds milliseconds since 1970; null for any other."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    return F.timestamp_millis(field_of_data(name).try_cast("bigint"))


@cache
def dialect_of(protocol: str) -> Dialect:
    """Returns the dialect of a protocol, by its name in URLs."""
    dialect: Dialect = importlib.import_module(f"jobwire.pipeline.stores.{protocol}.dialect").DIALECT
    return dialect


@cache
def all_dialects() -> Sequence[Dialect]:
    """Returns the dialects of all protocols that have a folder here, in the order of their names."""
    here = importlib.import_module("jobwire.pipeline.stores")
    found = [module.name for module in pkgutil.iter_modules(here.__path__) if module.ispkg]
    return [dialect_of(name) for name in found if importlib.util.find_spec(f"{here.__name__}.{name}.dialect")]
