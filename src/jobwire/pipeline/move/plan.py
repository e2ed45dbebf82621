"""Finds out what a move would do, without changing anything."""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from jobwire.counted import counted
from jobwire.look.words import spoken
from jobwire.pipeline.datasource.options import parse_options
from jobwire.pipeline.datasource.read_with import read_with
from jobwire.pipeline.datasource.source_options import SourceOptions
from jobwire.pipeline.move.order import Priorities
from jobwire.pipeline.move.route import Route
from jobwire.pipeline.move.schedules import ScheduleMove, plan_schedules
from jobwire.pipeline.move.survey import DROPPABLE, READY, SURVEYED, Survey
from jobwire.pipeline.spark.session import for_little
from jobwire.pipeline.stores.blocking import BlockingBackend, blocking_backend
from jobwire.pipeline.stores.dialect import dialect_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MANY_LEVELS = 100_000
_MANY_JOBS = 500_000
_TASK, _MOST_TASKS = 12_500, 64
"""Jobs that one task reads, and the number of tasks for many."""
_LEAST, _MOST = (0.5, 2.0), (4.0, 5.0)
"""A move takes so many times as long as the examination of its jobs, and so many seconds more. Measured: 2 to 4 times
in bench/results; 0.8, 1.6 and 2.4 times for some thousand jobs, where the examination has Spark's start in it; 4.5 s
after 0.75 s for a few."""


@dataclass(frozen=True)
class Hindrance:
    """Jobs that can't be moved as they are."""

    what: str
    count: int
    example: str
    why: str
    stops: bool
    """True if these jobs block the move: neither `drop` nor `leave` covers them."""


@dataclass(frozen=True)
class MovePlan:
    """The steps of a move before it is made, and what it would lose."""

    name: str
    from_store: str
    from_queue: str
    to_store: str
    to_queue: str
    counts: Mapping[str, int]
    """Jobs of the source by state."""
    ready: int
    delayed: int
    finished: Mapping[str, int]
    """Finished jobs that are moved too, by state."""
    stays: Mapping[str, int]
    """Jobs in states that are not moved."""
    hindrances: Sequence[Hindrance]
    losses: Mapping[str, int]
    """The number of jobs that lose each option, because the target can't store it."""
    priorities: str
    schedules: Sequence[str]
    schedules_that_stay: Sequence[str]
    pause_seconds: float
    """The longest time for which both queues would be paused, by estimate, without the time for running jobs to end."""
    pause_seconds_least: float
    """The shortest time."""
    notes: Sequence[str]

    @property
    def possible(self) -> bool:
        return not any(hindrance.stops for hindrance in self.hindrances)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "possible": self.possible}


def plan_move(
    spark: SparkSession,
    source: str,
    target: str,
    queue: str,
    *,
    to_queue: str | None = None,
    drop: frozenset[str] = frozenset(),
    leave: bool = False,
    include: frozenset[str] = frozenset(),
) -> MovePlan:
    """Returns what a move of the queue would do. Changes nothing."""
    route = Route(source, target, queue, to_queue or queue, frozenset(drop), leave, frozenset(include))
    with blocking_backend(source) as here, blocking_backend(target) as there:
        schedules = plan_schedules(here, queue, there, route.to_queue)
        with for_few(spark, here, queue):
            return planned(spark, route, here, there, schedules)


@contextmanager
def for_few(spark: SparkSession, here: BlockingBackend, queue: str) -> Generator[None]:
    """Has Spark not compile its queries inside the block, unless there are very many jobs: that takes longer than it
    saves."""
    jobs = _count(here, queue, READY)
    with for_little(spark, jobs) if jobs < _MANY_JOBS else nullcontext():
        yield


def are_few(url: str, queue: str, include: Collection[str] = ()) -> bool:
    """Returns whether a move of the queue is so small that a brief session suits it, see spark_session. `include` are
    finished states that are moved too."""
    with blocking_backend(url) as here:
        return _count(here, queue, {*READY, *include}) < _MANY_JOBS


def _count(here: BlockingBackend, queue: str, states: Collection[str]) -> int:
    counts = here.ask(here.backend.counts(queue))
    return sum(count for state, count in counts.items() if state.value in states)


def planned(
    spark: SparkSession, route: Route, here: BlockingBackend, there: BlockingBackend, schedules: Sequence[ScheduleMove]
) -> MovePlan:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    surveyed = once(survey(spark, route, here, there, schedules)).persist()
    began = time.monotonic()
    try:
        groups = surveyed.groupBy("late", "hindrance").agg(
            F.count("*").alias("count"), F.min("id").alias("example"), F.min("reason").alias("reason")
        )
        rows = groups.collect()
        examined = time.monotonic() - began
        losses = (
            surveyed.where("lost <> ''")
            .select(F.explode(F.split("lost", ",")).alias("what"))
            .groupBy("what")
            .count()
            .collect()
        )
        rule = priorities_of(route, surveyed).described()
    finally:
        surveyed.unpersist()
    counts = {state.value: count for state, count in here.ask(here.backend.counts(route.queue)).items() if count}
    moved = {*READY, *route.include}
    return MovePlan(
        name=route.name,
        from_store=route.from_store,
        from_queue=route.queue,
        to_store=route.to_store,
        to_queue=route.to_queue,
        counts=counts,
        ready=sum(row["count"] for row in rows if not row["late"] and row["hindrance"] is None),
        delayed=sum(row["count"] for row in rows if row["late"] and row["hindrance"] is None),
        finished={state: count for state, count in counts.items() if state in route.include},
        stays={state: count for state, count in counts.items() if state not in moved},
        hindrances=_hindrances(route, rows),
        losses={row["what"]: row["count"] for row in sorted(losses)},
        priorities=rule,
        schedules=[f"{one.key}: {one.described}" for one in schedules if not one.stays],
        schedules_that_stay=[f"{one.key}: {one.described}" for one in schedules if one.stays],
        pause_seconds=pause_after(examined)[1],
        pause_seconds_least=pause_after(examined)[0],
        notes=[*_notes(route, losses), _pause(sum(row["count"] for row in rows), examined)],
    )


def survey(
    spark: SparkSession,
    route: Route,
    here: BlockingBackend,
    there: BlockingBackend,
    schedules: Sequence[ScheduleMove],
    *,
    asks: bool = False,
) -> DataFrame:
    """Returns the jobs that wait, in the columns of SURVEYED; one that changes its state meanwhile perhaps twice. With
    `asks`, those whose ids the target holds are marked."""
    looking = Survey(
        route.from_protocol,
        route.from_store,
        route.queue,
        there.url,
        route.to_queue,
        route.drop,
        frozenset(one.key for one in schedules if one.stays),
        asks,
    )
    options = waiting_jobs(here, route.queue, route.from_store)
    return read_with(spark, options, looking, SURVEYED)


def waiting_jobs(of: BlockingBackend, queue: str, store: str) -> SourceOptions:
    """Returns the options of a read of the jobs that wait. Each partition is a task, and a connection."""
    parts = min(_MOST_TASKS, max(1, -(-_count(of, queue, READY) // _TASK)))
    return parse_options(
        {"url": of.url, "queue": queue, "store": store, "states": ",".join(READY), "parts": str(parts)}
    )


def once(rows: DataFrame) -> DataFrame:
    """Returns one row of each id: a job that changes its state while a queue is read may be read twice. A window, since
    Spark's own way takes each column's first value by itself, which costs more than all else here."""
    from pyspark.sql import Window  # noqa: PLC0415 an extra
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    same = Window.partitionBy("id").orderBy("late", "native_state")
    return rows.withColumn("reading", F.row_number().over(same)).where("reading = 1").drop("reading")


def jobs_of(spark: SparkSession, url: str, queue: str, store: str, states: str) -> DataFrame:
    """Returns rows of the table `jobs`."""
    reader = spark.read.format("jobwire").option("url", url).option("queue", queue).option("store", store)
    return reader.option("states", states).load()


def priorities_of(route: Route, surveyed: DataFrame) -> Priorities:
    """Returns the rule for the priorities of these jobs in the target."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    [(low, high)] = surveyed.agg(F.min("level"), F.max("level")).collect()
    return priorities_for(route, [number for number in (low, high) if number is not None], surveyed)


def priorities_for(route: Route, levels: Sequence[int], surveyed: DataFrame) -> Priorities:
    """Returns the rule for the priorities of jobs between the lowest and the highest of these levels."""
    priorities = Priorities.between(route.from_protocol, route.to_protocol, levels)
    if priorities.levels.steps:
        distinct = surveyed.select("level").distinct().limit(_MANY_LEVELS).collect()
        return Priorities.between(route.from_protocol, route.to_protocol, [row["level"] for row in distinct])
    return priorities


def _hindrances(route: Route, rows: Sequence[Any]) -> list[Hindrance]:
    found: dict[str, Hindrance] = {}
    for row in rows:
        what = row["hindrance"]
        if what is None:
            continue
        before = found[what].count if what in found else 0
        stops = what != "schedules" and not route.leave
        found[what] = Hindrance(what, before + row["count"], row["example"], row["reason"] or "", stops)
    return [found[what] for what in sorted(found)]


def pause_after(examined: float) -> tuple[float, float]:
    """Returns the least and the most seconds of a pause, if the examination of the jobs has taken so long.

    >>> pause_after(10.0)
    (7.0, 45.0)
    """
    least, most = (times * examined + more for times, more in (_LEAST, _MOST))
    return least, most


def _pause(jobs: int, examined: float) -> str:
    least, most = pause_after(examined)
    return (
        f"both queues are paused for {spoken(least)} to {spoken(most)}: to examine {counted(jobs, 'job')} took "
        f"{spoken(examined)}, and a move takes between half and {_MOST[0]:g} times as long, and some seconds more; "
        "that running jobs end is not counted"
    )


def _notes(route: Route, losses: Sequence[Any]) -> list[str]:
    source, target = dialect_of(route.from_protocol), dialect_of(route.to_protocol)
    notes = [f"the source is paused: {source.pause}", f"the target too: {target.pause}"]
    if not target.keeps_creation_time:
        notes.append("jobs count as created at the time of the move; due times stay to the millisecond")
    if any(row["what"] in DROPPABLE for row in losses) and route.drop:
        notes.append(f"jobs lose {', '.join(sorted(route.drop))}, as asked")
    notes.append("a job that has failed before keeps only the attempts that it had left")
    return notes
