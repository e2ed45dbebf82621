"""Loads files, tables and DataFrames into a queue.

A load checks every row first, with the same functions that will write it, and touches the queue only afterwards. Each
row's job has an id of its own: the column `id`, else a digest of the row (of its texts, if types are inferred), of the
run's name and of the row's number among its equals, in whichever partition it is. Two runs of one name therefore add a
job once between them. The name is made from the source's path and the target, so giving the same command again after a
crash continues the load, and after the file has grown adds its new rows.

A queue whose finished jobs are removed at once forgets ids: a job that has run before its task is tried again would be
added a second time. `hold=True` pauses the queue for the time of the load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from jobwire.boundary import Backend, PreparedJob
from jobwire.counted import counted
from jobwire.errors import InvalidOption, JobwireError
from jobwire.pipeline.datasource.add_rows import OTHER_CONTENT, added, with_presence
from jobwire.pipeline.datasource.options import parse_options
from jobwire.pipeline.datasource.row_to_job import JOB_COLUMNS, check_columns, job_of
from jobwire.pipeline.datasource.source_options import SourceOptions
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.load.check import CHECKED, CONTENT, ORDINAL, Check
from jobwire.pipeline.load.csv_files import CORRUPT, TEXTS, quoted
from jobwire.pipeline.load.source import Loadable, loadable
from jobwire.pipeline.privacy.record import has_rules
from jobwire.pipeline.privacy.rules import EVERYTHING_KEPT, Privacy
from jobwire.pipeline.spark.progress import Progress, silent
from jobwire.pipeline.spark.utc import utc_day
from jobwire.pipeline.stores.blocking import BlockingBackend, blocking_backend
from jobwire.pipeline.stores.ids import digest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EXAMPLES = 3
_REASONS = 10


@dataclass(frozen=True)
class LoadResult:
    """The result of a load. rows = added + there_before + changed + refused + rejected. If an id is in the source
    twice, its later rows count as there before, or as changed."""

    run: str
    store: str
    queue: str
    rows: int
    added: int
    there_before: int
    changed: int
    """Rows whose id is that of a job with another payload. The job stays as it is."""
    refused: int
    """Refused by the store for another reason than the id: a unique key that another job holds, a policy of the queue.
    """
    rejected: int
    """Rows that can't become jobs. They are in the lake's table `quarantine_load`, with their reasons."""
    missing: int
    """Ids that the store confirmed and that are no longer there: the jobs have run and were removed, unless `held`."""
    held: bool
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])
    """The most frequent reasons of refusals and rejections."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def load(
    spark: SparkSession,
    source: DataFrame | str,
    to: str,
    queue: str,
    *,
    lake: Lake | None = None,
    run: str | None = None,
    kind: Literal["csv", "json", "parquet", "table"] | None = None,
    columns: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    infer: bool = False,
    invalid: Literal["quarantine", "fail"] = "quarantine",
    hold: bool = False,
    size_limit: int | None = None,
    privacy: Privacy = EVERYTHING_KEPT,
    progress: Progress = silent,
) -> LoadResult:
    """Adds the source's rows to a queue, and checks afterwards that every one is there.

    `columns` names the source's column for a column of the writer: `{"id": "order_no", "payload": "body"}`. `options`
    are Spark's own for reading the files, for CSV those of its dialect: see csv_files.py. CSV values stay texts unless
    `infer`. Rows that can't become jobs go to the
    lake's quarantine; with `invalid="fail"`, or without a lake, they raise before anything is written.
    If the queue has rules of privacy, in `privacy` or in the lake, the quarantine has the reasons without any value.
    """
    if invalid not in ("quarantine", "fail"):
        raise InvalidOption("invalid", invalid, "must be quarantine or fail")
    mapping = _checked_mapping(columns or {})
    target = _target(to, queue, size_limit)
    rows = loadable(spark, source, kind, infer=infer, options=options)
    name = run or f"load-{digest(rows.identity, target.store, queue)}"
    private = privacy.of_queue(queue) is not None or (lake is not None and has_rules(lake, queue))
    checked = _checked(rows, Check(target, name, rows.lines, mapping, private))
    if lake is None:
        return _Loading(name, target, None, None, hold, progress).through(checked)
    with (
        lake.files.locked(name),
        lake.run("load", store=target.store, queue=queue, load=name) as record,
    ):
        kept = record.id if invalid == "quarantine" else None
        result = _Loading(name, target, lake, kept, hold, progress).through(checked)
        record.rows_in, record.rows_out = result.rows, result.added
        record.note(**result.as_dict())
    return result


@dataclass(frozen=True)
class _Loading:
    """One load in progress."""

    run: str
    target: SourceOptions
    lake: Lake | None
    record: str | None
    """The run under which rejected rows are kept; None: they end the load."""
    hold: bool
    progress: Progress

    def through(self, rows: DataFrame) -> LoadResult:
        self.progress("check", 0, None)
        checked = rows.persist()
        try:
            total, rejected, reasons = _tally(checked)
            self.progress("check", total, total)
            if rejected:
                self._dispose(checked, rejected, reasons)
            with blocking_backend(self.target.url) as store, self._held(store):
                store.ask(store.backend.register(self.target.queue))
                written = self._write(checked, store, total - rejected)
        finally:
            checked.unpersist()
        result = LoadResult(
            run=self.run,
            store=self.target.store,
            queue=self.target.queue,
            rows=total,
            added=written.added,
            there_before=written.there_before,
            changed=written.changed,
            refused=written.refused,
            rejected=rejected,
            missing=written.missing,
            held=self.hold,
            reasons=dict((Counter(reasons) + Counter(written.reasons)).most_common(_REASONS)),
        )
        if self.hold and result.missing:
            raise JobwireError(
                f"{result.missing:,} of {counted(result.added, 'job')} added to {result.queue!r} can't be found there"
            )
        return result

    def _dispose(self, checked: DataFrame, rejected: int, reasons: Mapping[str, int]) -> None:
        """Writes rejected rows to the quarantine, or raises if there is none."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        if self.record is None or self.lake is None:
            examples = "; ".join(list(reasons)[:_EXAMPLES])
            advice = "" if self.lake is not None else " (with a lake they can go to its quarantine instead)"
            raise JobwireError(
                f"{counted(rejected, 'row')} can't become a job, nothing was written{advice}: {examples}"
            )
        now = F.current_timestamp()
        where = {"store": self.target.store, "queue": self.target.queue, "source": "load"}
        found = checked.where("reason IS NOT NULL").select("id", "reason", "record", now.alias("seen_at"))
        found = found.withColumns({name: F.lit(value) for name, value in where.items()})
        self.lake.append("quarantine_load", found.withColumn("day", utc_day(F.col("seen_at"))), self.record, self.run)

    @contextmanager
    def _held(self, store: BlockingBackend) -> Generator[None]:
        """Pauses the queue inside the block. A queue that was paused before stays so; one that a killed load left
        paused is recognised by a note in the lake."""
        if not self.hold:
            yield
            return
        pause, queue, note = store.pause, self.target.queue, f"workings/{self.run}"
        files = None if self.lake is None else self.lake.files
        ours = files is not None and files.read(f"{note}/hold.json") is not None
        if ours or not store.ask(pause.paused(queue)):
            ours = True
            if files is not None:
                files.write(f"{note}/hold.json", {"store": self.target.store, "queue": queue})
            store.ask(pause.pause(queue))
        yield
        if ours:
            store.ask(pause.resume(queue))
            if files is not None:
                files.remove(note)

    def _write(self, checked: DataFrame, store: BlockingBackend, expected: int) -> _Written:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        self.progress("add", 0, expected)
        good = checked.where("reason IS NULL").select(*JOB_COLUMNS)
        answers = added(good, store.url, self.target.queue, _RowJob(self.target), compare=True).persist()
        try:
            done = answers.count()
            self.progress("add", done, expected)
            self.progress("verify", 0, expected)
            new = F.col("refused").isNull()
            seen = with_presence(answers, store.url, self.target.queue)
            groups = seen.groupBy(new.alias("new"), "held", "refused").count().collect()
            self.progress("verify", done, expected)
        finally:
            answers.unpersist()
        tally: Counter[tuple[bool, bool]] = Counter()
        reasons: Counter[str] = Counter()
        for row in groups:
            if row["refused"] == OTHER_CONTENT or not (row["new"] or row["held"]):
                reasons[row["refused"]] += row["count"]
            tally[row["new"], row["held"]] += row["count"]
        changed = reasons[OTHER_CONTENT]
        return _Written(
            added=tally[True, True] + tally[True, False],
            there_before=tally[False, True] - changed,
            changed=changed,
            refused=tally[False, False],
            missing=tally[True, False],
            reasons=+reasons,
        )


class _Written(NamedTuple):
    added: int
    there_before: int
    changed: int
    refused: int
    missing: int
    reasons: Mapping[str, int]


@dataclass(frozen=True)
class _RowJob:
    """Makes the job of a checked row."""

    options: SourceOptions

    def __call__(self, backend: Backend, row: Mapping[str, Any]) -> PreparedJob:
        return job_of(backend, self.options, row)


def _checked_mapping(mapping: Mapping[str, str]) -> Mapping[str, str]:
    for name in mapping:
        if name not in JOB_COLUMNS:
            raise InvalidOption("columns", name, f"must be of {', '.join(JOB_COLUMNS)}")
    return dict(mapping)


def _target(to: str, queue: str, size_limit: int | None) -> SourceOptions:
    given = {"url": to, "queue": queue}
    if size_limit is not None:
        given["size_limit"] = str(size_limit)
    return parse_options(given)


def _checked(rows: Loadable, check: Check) -> DataFrame:
    from pyspark.sql import Window  # noqa: PLC0415 an extra
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    frame = rows.frame
    names = [name for name in frame.columns if name not in (CORRUPT, TEXTS)]
    wanted = {*names} - {check.mapping.get(name, name) for name in JOB_COLUMNS}
    missing = sorted(set(check.mapping.values()) - set(names))
    if missing and not rows.lines:
        raise InvalidOption("columns", missing[0], f"is not a column of the source, which has {', '.join(names)}")
    if not rows.lines and "payload" not in check.mapping:
        check_columns([*(name for name in JOB_COLUMNS if check.mapping.get(name, name) in names), *wanted])
    if rows.lines or check.mapping.get("id", "id") not in names:
        content = F.col(TEXTS) if rows.inferred else F.struct(*map(quoted, frame.columns))
        frame = frame.withColumn(CONTENT, F.sha2(F.to_json(content, {"ignoreNullFields": "false"}), 256))
        # Rows with the same hash are equal, so any order among them will do.
        frame = frame.withColumn(ORDINAL, F.row_number().over(Window.partitionBy(CONTENT).orderBy(CONTENT)))
    if rows.lines:  # bytes that are not UTF-8 can't be handed on as text
        frame = frame.withColumn("value", F.col("value").cast("binary"))
    return frame.drop(TEXTS).mapInArrow(check, CHECKED.ddl)


def _tally(checked: DataFrame) -> tuple[int, int, dict[str, int]]:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    [(total, rejected)] = checked.agg(F.count("*"), F.count("reason")).collect()
    if not rejected:
        return total, 0, {}
    by_reason = checked.where("reason IS NOT NULL").groupBy("reason").count().orderBy(F.desc("count"), "reason")
    return total, rejected, {row["reason"]: row["count"] for row in by_reason.limit(_REASONS).collect()}
