"""Examines each waiting job: what it would be in the target, or why it can't be moved."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any, cast

import pyarrow as pa

from jobwire import codec, urls
from jobwire.backoff import Backoff
from jobwire.boundary import Backend, Feature, PreparedJob
from jobwire.connection import load_backend
from jobwire.errors import JobwireError
from jobwire.options import Keep, NewJob, Unique
from jobwire.pipeline.datasource.content import content_of
from jobwire.pipeline.lake.schemas import columns
from jobwire.pipeline.stores.boundary import QueueStore, open_store
from jobwire.pipeline.stores.dialect import Dialect, dialect_of
from jobwire.preparing import prepare

SURVEYED = columns(
    "id string",
    "target string",  # the id that it will have
    "late boolean",  # due later, not ready
    "level bigint",  # of its priority, see stores/dialect.py
    "own_priority bigint",
    "position bigint",
    "native_state string",
    "name string",  # null: the queue's
    "payload string",
    "attempts int",
    "run_at timestamp",
    "unique_key string",
    "created_at timestamp",
    "options string",  # JSON of what else is carried
    "content string",  # digest of what a reader of the job sees: data and name, in one spelling
    "scheduled boolean",  # made by a schedule
    "hindrance string",  # names, unique_keys, parents, schedules, invalid, malformed, taken; null: it can be moved
    "reason string",
    "lost string",  # what the target has no place for, separated by commas
)
"""The result of the survey, a row per job. The manifest of a move holds these rows and their rank."""

EXAMINED = (
    *("id", "name", "native_state", "position", "priority", "attempts", "attempts_made", "payload", "progress"),
    *("parent", "unique_key", "created_at", "run_at", "raw", "malformed"),
)
"""The columns of `jobs` that the survey needs: those of finished jobs would only be carried along."""

DROPPABLE = ("names", "unique_keys", "parents")
"""Options that jobs may lose in a move, if the operator allows it."""


@dataclass(frozen=True)
class Survey:
    """Examines rows with the columns EXAMINED and `late`. Runs in Spark's processes."""

    source: str
    """The protocol of the source."""
    store: str
    queue: str
    to: str
    to_queue: str
    drop: frozenset[str]
    left_schedules: frozenset[str]
    """Keys of schedules that stay in the source, together with their jobs."""
    asks: bool = False
    """Asks the target which ids it holds already. It is touched by nothing else."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        address = urls.parse(self.to)
        backend, dialect = load_backend(address), dialect_of(address.protocol)
        checks = OptionChecks(backend, self.to_queue)
        with closing(open_store(address, self.to_queue, "")) if self.asks else nullcontext() as target:
            for batch in batches:
                rows = [
                    self.row(backend, dialect, checks, row) for row in cast("list[dict[str, Any]]", batch.to_pylist())
                ]
                if target is not None:
                    mark_taken(target, rows)
                yield as_batch(rows)

    def row(self, backend: Backend, target: Dialect, checks: OptionChecks, job: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a row of SURVEYED. `target` is the dialect of the backend."""
        can, source = backend.capabilities, dialect_of(self.source)
        kept = ("id", "late", "position", "native_state", "run_at", "created_at")
        row: dict[str, Any] = {**dict.fromkeys(SURVEYED.names), **{name: job[name] for name in kept}}
        row |= {"own_priority": job["priority"], "level": source.level(job["priority"])}
        row |= {"scheduled": False, "lost": ""}
        if job["malformed"] is not None:
            return row | {"hindrance": "malformed", "reason": job["malformed"]}
        raw = _raw(job["raw"])
        lost: list[str] = []
        key = source.schedule_key(job, raw)
        row["scheduled"] = key is not None
        name = job["name"] if job["name"] not in (None, "", self.queue) else None
        if name is not None and not can.has(Feature.JOB_NAMES):
            lost.append("names")
        if job["parent"] is not None:
            lost.append("parents")
        unique = job["unique_key"] if key is None else None
        if unique is not None and not can.has(Feature.UNIQUE):
            lost.append("unique_keys")
        undecided = [what for what in lost if what not in self.drop]
        carried, unknown = source.carried(raw)
        taken, left = checks.sorted_out(carried)
        made, attempts = job["attempts_made"] or 0, job["attempts"]
        row |= {
            "target": target.id_of_moved(self.store, self.queue, job["id"], job["created_at"]),
            "name": name if "names" not in lost else None,
            "unique_key": unique if "unique_keys" not in lost else None,
            "attempts": max(1, attempts - made) if can.has(Feature.ATTEMPTS) and attempts is not None else None,
            "options": codec.dumps(_plain(taken)).decode(),
            "lost": ",".join([*lost, *left, *unknown, *_more_lost(job, can.has(Feature.ATTEMPTS))]),
        }
        try:
            data = codec.loads(job["payload"])
            row["payload"] = codec.dumps(data).decode()
            row["content"] = content_of(data, row["name"] if row["name"] != self.to_queue else None)
            moved_job(backend, target, self.to_queue, row)
        except JobwireError as error:
            return row | {"hindrance": "invalid", "reason": str(error)}
        if undecided:
            return row | {"hindrance": undecided[0], "reason": f"{can.protocol} has no {_WORDS[undecided[0]]}"}
        if key is not None and (row["late"] or key in self.left_schedules):
            return row | {"hindrance": "schedules", "reason": "the schedule makes it"}
        return row


def mark_taken(target: QueueStore, rows: Sequence[dict[str, Any]]) -> None:
    """Marks the jobs whose ids the target holds already. Nothing has been copied yet, so they are other jobs."""
    movable = {row["target"]: row for row in rows if row["hindrance"] is None}
    for held in target.present(list(movable)) if movable else ():
        movable[held] |= {"hindrance": "taken", "reason": "the target has a job with this id"}


def as_batch(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Returns rows of SURVEYED as a record batch."""
    arrays = [
        pa.array([row[name] for row in rows], kind)
        for name, kind in zip(SURVEYED.names, SURVEYED.arrow.types, strict=True)
    ]
    return pa.record_batch(arrays, schema=SURVEYED.arrow)


_WORDS = {"names": "names of jobs beside the queue's", "unique_keys": "unique keys", "parents": "parents of moved jobs"}


class OptionChecks:
    """Finds out which options of a job the target takes. Remembers the answers: most jobs of a queue have the same
    options."""

    def __init__(self, backend: Backend, queue: str) -> None:
        self._backend = backend
        self._queue = queue
        self._known: dict[tuple[str, Any], bool] = {}

    def sorted_out(self, options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Returns the options that the target takes, and the names of the others."""
        taken = {name: value for name, value in options.items() if self._takes(name, value)}
        return taken, [name for name in options if name not in taken]

    def _takes(self, name: str, value: Any) -> bool:
        known = self._known.get((name, value))
        if known is None:
            try:
                with _large_keeps():
                    prepare(self._backend, self._queue, NewJob(None, **{name: value}), None)
                known = True
            except JobwireError:
                known = False
            self._known[name, value] = known
        return known


@contextmanager
def _large_keeps() -> Generator[None]:
    """Silences the warning about large counts inside the block: the producer chose them, not the operator of a move."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def moved_job(
    backend: Backend, dialect: Dialect, queue: str, row: Mapping[str, Any], priority: int | None = None
) -> PreparedJob:
    """Returns the job that a row of the survey becomes."""
    with _large_keeps():
        new = NewJob(
            codec.loads(row["payload"]),
            id=row["target"],
            name=row["name"],
            priority=priority,
            attempts=row["attempts"],
            unique=Unique(row["unique_key"]) if row["unique_key"] else None,
            **dialect.times(row["created_at"], row["run_at"] if row["late"] else None),
            **_rich(codec.loads(row["options"])),
        )
    return prepare(backend, queue, new, None)


def _more_lost(job: Mapping[str, Any], per_job_attempts: bool) -> Sequence[str]:
    lost: list[str] = []
    if not per_job_attempts and (job["attempts"] or 1) > 1:
        lost.append("attempts")
    if job["progress"] not in (None, "0", "null"):
        lost.append("progress")
    return lost


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: asdict(value) if isinstance(value, (Backoff, Keep)) else value for name, value in options.items()}


def _rich(options: Mapping[str, Any]) -> dict[str, Any]:
    rich = dict(options)
    if "backoff" in rich:
        rich["backoff"] = Backoff(**rich["backoff"])
    for name in ("keep_completed", "keep_failed"):
        if isinstance(rich.get(name), dict):
            rich[name] = Keep(**rich[name])
    return rich


def _raw(text: str | None) -> dict[str, Any]:
    value = codec.loads(text) if text else {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
