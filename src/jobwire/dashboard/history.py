"""The history of queues, from the gold tables that the pipeline has published in a lake. Read without Spark.

Reading is done in a thread, once for each publication of the tables and each period: pages share the result. A page
waits a moment for it, and gets StillReading if that is not enough.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import orjson

from jobwire.dashboard.history_figures import FailureClass, Percentiles, Period, Point, QueueHistory, StillReading
from jobwire.errors import JobwireError, MissingExtra

try:
    from pyarrow import compute as arrow

    from jobwire.pipeline.lake.files import LakeFiles
    from jobwire.pipeline.lake.pointers import load
    from jobwire.pipeline.lake.pointers import read_table as _table  # pyright: ignore[reportUnknownVariableType] Arrow
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "pyarrow":
        raise
    raise MissingExtra("the history of the dashboard (--lake)", "spark") from None

_compute: Any = arrow
"""Arrow has no types that a strict checker could follow."""
THROUGHPUT, LATENCY, FAILURES = "gold/throughput_hourly", "gold/latency_hourly", "gold/failures_daily"
MOST_QUEUES = 25
"""Queues with figures of their own, those that finished most jobs."""
MOST_FAILURES = 25
_KEPT = 8
"""Results that are kept in memory."""
_BY_HOURS = timedelta(days=2)
"""Up to this length a period is drawn by hours, else by days."""
_GROWTH = 1.02
_MOMENT = 1.0
_MOST_UNDER_WAY = 8


class History:
    """The published tables of one lake."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._known: OrderedDict[tuple[object, ...], Period] = OrderedDict()
        self._under_way: dict[tuple[object, ...], asyncio.Task[Period | None]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def period(self, days: int, store: str = "", queue: str = "") -> Period | None:
        """Returns the last days that the lake has, of all queues or of one. None if nothing was published yet. Raises
        StillReading if that takes longer than a moment."""
        key = (days, store, queue)
        task = self._under_way.get(key)
        if task is None:
            if len(self._under_way) >= _MOST_UNDER_WAY:
                raise StillReading
            task = self._under_way[key] = asyncio.create_task(self._read(days, store, queue))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        await asyncio.wait([task], timeout=_MOMENT)
        if not task.done():
            raise StillReading
        return task.result()

    async def close(self) -> None:
        """Waits for what is being read: a thread can't be stopped."""
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def _read(self, days: int, store: str, queue: str) -> Period | None:
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._period, days, store, queue)

    def _period(self, days: int, store: str, queue: str) -> Period | None:
        files = LakeFiles(self.root)
        pointers = {name: load(files, name) for name in (THROUGHPUT, LATENCY, FAILURES)}
        throughput = pointers[THROUGHPUT]
        if throughput is None:
            return None
        key = (days, store, queue, *(found and (found.run, found.generation) for found in pointers.values()))
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        try:
            published = datetime.fromisoformat(throughput.published_at)
            found = _read(self.root, days, store, queue, published, {name for name in pointers if pointers[name]})
        except OSError as error:
            raise JobwireError(f"the lake at {self.root} can't be read: {error}") from error
        if found is not None:
            self._known[key] = found
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found


def _read(  # noqa: PLR0917 all of them name the period
    root: str, days: int, store: str, queue: str, published: datetime, tables: set[str]
) -> Period | None:
    columns = ["store", "queue", "hour", "completed", "failed"]
    hours = _of(_published(root, THROUGHPUT, columns=columns), store, queue)
    if not hours.num_rows:
        return None
    oldest, newest = _compute.min(hours["hour"]).as_py(), _compute.max(hours["hour"]).as_py()
    end = newest + timedelta(hours=1)
    begin = max(oldest, end - timedelta(days=days))
    by_hours = end - begin <= _BY_HOURS
    if not by_hours:  # the last day is one of them, also while it is not over
        begin = max(oldest.replace(hour=0), newest.replace(hour=0) - timedelta(days=days - 1))
    starts = list(_starts(begin, end, by_hours=by_hours))
    counts: dict[tuple[str, str], dict[datetime, list[int]]] = {}
    within = hours.filter(_compute.greater_equal(hours["hour"], begin))
    grouped = within.group_by(["store", "queue", "hour"]).aggregate([("completed", "sum"), ("failed", "sum")])
    for row in _rows(grouped):
        cells = counts.setdefault((row["store"], row["queue"]), {})
        cell = cells.setdefault(_start(row["hour"], by_hours=by_hours), [0, 0])
        cell[0] += row["completed_sum"] or 0
        cell[1] += row["failed_sum"] or 0
    busiest = sorted(counts, key=lambda one: -sum(sum(cell) for cell in counts[one].values()))
    shown = busiest[:MOST_QUEUES]
    latencies: Mapping[tuple[str, str], _Latency] = {}
    if LATENCY in tables:
        latencies = _latencies(root, shown, begin, by_hours=by_hours, by_points=len(shown) == 1)
    return Period(
        begin,
        end,
        published.astimezone(UTC),
        by_hours,
        [_queue(one, counts[one], latencies.get(one, _Latency()), starts) for one in shown],
        len(busiest) - len(shown),
        [_total(at, counts.values()) for at in starts],
        _failures(root, begin, end, store, queue) if FAILURES in tables else [],
    )


def _published(root: str, name: str, **options: Any) -> Any:
    return cast("Any", _table)(root, name, **options)


def _of(table: Any, store: str, queue: str) -> Any:
    for column, wanted in (("store", store), ("queue", queue)):
        if wanted:
            table = table.filter(_compute.equal(table[column], wanted))
    return table


def _rows(table: Any) -> list[dict[str, Any]]:
    return table.to_pylist()


def _start(hour: datetime, *, by_hours: bool) -> datetime:
    return hour if by_hours else hour.replace(hour=0)


def _starts(begin: datetime, end: datetime, *, by_hours: bool) -> Iterable[datetime]:
    at = begin
    while at < end:
        yield at
        at += timedelta(hours=1) if by_hours else timedelta(days=1)


def _total(at: datetime, counts: Iterable[Mapping[datetime, Sequence[int]]]) -> Point:
    cells = [cells[at] for cells in counts if at in cells]
    return Point(at, sum(cell[0] for cell in cells), sum(cell[1] for cell in cells), None, None)


class _Latency:
    """Sketches of one queue, added up by hour or day, and in all. `wait` and `run` hold counts by bucket."""

    def __init__(self) -> None:
        self.at: dict[datetime, dict[str, dict[str, int]]] = {}

    def add(self, at: datetime, kind: str, sketch: str | None) -> None:
        if sketch:
            cell = self.at.setdefault(at, {}).setdefault(kind, {})
            for bucket, number in orjson.loads(sketch).items():
                cell[bucket] = cell.get(bucket, 0) + number

    def of(self, at: datetime, kind: str) -> Percentiles | None:
        return percentiles(self.at.get(at, {}).get(kind, {}))

    def whole(self, kind: str) -> Percentiles | None:
        if len(self.at) == 1:
            return self.of(next(iter(self.at)), kind)
        added: dict[str, int] = {}
        for cells in self.at.values():
            for bucket, number in cells.get(kind, {}).items():
                added[bucket] = added.get(bucket, 0) + number
        return percentiles(added)


def percentiles(sketch: Mapping[str, int]) -> Percentiles | None:
    """Returns the percentiles of counts by bucket, each right to 1 %. See latency_sketch.py of the pipeline.

    >>> percentiles({"-1": 50, "350": 50}).p50, round(percentiles({"-1": 50, "350": 50}).p95, 2)
    (0.0, 1.01)
    """
    total = sum(sketch.values())
    if not total:
        return None
    buckets = sorted((int(bucket), number) for bucket, number in sketch.items())

    def level(share: float) -> float:
        seen = 0
        for bucket, number in buckets:
            seen += number
            if seen >= total * share:
                return 0.0 if bucket < 0 else 2 * _GROWTH**bucket / (_GROWTH + 1) / 1000
        return 0.0

    return Percentiles(level(0.50), level(0.95), level(0.99))


def _latencies(
    root: str, shown: Sequence[tuple[str, str]], begin: datetime, *, by_hours: bool, by_points: bool
) -> Mapping[tuple[str, str], _Latency]:
    """Returns the sketches of the queues, for each hour or day, or only for the whole period, which is less work."""
    columns = ["store", "queue", "hour", "wait_sketch", "run_sketch"]
    wanted = (_compute.field("hour") >= begin) & _compute.field("queue").isin(sorted({queue for _, queue in shown}))
    found: dict[tuple[str, str], _Latency] = {}
    for row in _rows(_published(root, LATENCY, columns=columns, where=wanted)):
        latency = found.setdefault((row["store"], row["queue"]), _Latency())
        at = _start(row["hour"], by_hours=by_hours) if by_points else begin
        latency.add(at, "wait", row["wait_sketch"])
        latency.add(at, "run", row["run_sketch"])
    return found


def _queue(
    key: tuple[str, str], cells: Mapping[datetime, Sequence[int]], latency: _Latency, starts: Sequence[datetime]
) -> QueueHistory:
    points: list[Point] = []
    for at in starts:
        completed, failed = cells.get(at, (0, 0))
        points.append(Point(at, completed, failed, latency.of(at, "wait"), latency.of(at, "run")))
    return QueueHistory(*key, points, latency.whole("wait"), latency.whole("run"))


def _failures(root: str, begin: datetime, end: datetime, store: str, queue: str) -> list[FailureClass]:
    """Returns the classes with most failed runs, the most frequent first."""
    wanted = _compute.field("day") >= begin.date()
    table = _of(_published(root, FAILURES, where=wanted), store, queue)
    days = [at.date() for at in _starts(begin.replace(hour=0), end, by_hours=False)]
    rows: dict[tuple[str, str, str], list[Any]] = {}
    for row in _rows(table):
        rows.setdefault((row["store"], row["queue"], row["error_class"]), []).append(row)
    most = sorted(rows, key=lambda key: -sum(row["failures"] for row in rows[key]))[:MOST_FAILURES]
    return [_failure(key, rows[key], days) for key in most]


def _failure(key: tuple[str, str, str], rows: Sequence[Any], days: Sequence[Any]) -> FailureClass:
    per_day = dict.fromkeys(days, 0)
    for row in rows:
        per_day[row["day"]] = per_day.get(row["day"], 0) + row["failures"]
    newest = max(rows, key=lambda row: row["day"])
    return FailureClass(
        *key,
        sum(row["failures"] for row in rows),
        sum(row["jobs"] for row in rows),
        min((row["first_at"] for row in rows if row["first_at"]), default=None),
        max((row["last_at"] for row in rows if row["last_at"]), default=None),
        newest["sample_error"] or "",
        list(per_day.values()),
    )
