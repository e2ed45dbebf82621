"""Examines each waiting job: what it would be in the target, or why it can't be moved."""

# Arrow makes its compute functions when it is imported, unseen by the checker.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from jobwire import codec, urls
from jobwire.boundary import Backend, Feature
from jobwire.connection import load_backend
from jobwire.errors import JobwireError
from jobwire.pipeline.datasource.content import content_of
from jobwire.pipeline.lake.schemas import columns
from jobwire.pipeline.move.moved_job import Asked, OptionChecks, large_keeps, moment, moved_job
from jobwire.pipeline.stores.boundary import QueueStore, open_store
from jobwire.pipeline.stores.dialect import Dialect, dialect_of

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


class Waiting(NamedTuple):
    """The columns of `jobs` that the survey looks at. Times are in microseconds."""

    id: str
    name: str | None
    native_state: str
    state: str
    priority: int | None
    attempts: int | None
    attempts_made: int | None
    payload: str | None
    progress: str | None
    parent: str | None
    unique_key: str | None
    created_at: int | None
    run_at: int | None
    raw: str | None
    malformed: str | None


READY = ("waiting", "paused", "delayed")
"""The states of jobs that are moved."""
READY_VALUES = pa.array(READY)

DROPPABLE = ("names", "unique_keys", "parents")
"""Options that jobs may lose in a move, if the operator allows it."""


@dataclass(frozen=True)
class Survey:
    """Examines the jobs of a partition, rows of the table `jobs`. Runs in Spark's processes."""

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
        examination = Examination(self, load_backend(address), dialect_of(address.protocol))
        with closing(open_store(address, self.to_queue, "")) if self.asks else nullcontext() as target:
            for batch in batches:
                jobs = that_wait(batch)
                with large_keeps():
                    found = [examination.of(job) for job in _rows(jobs)]
                if target is not None:
                    mark_taken(target, found)
                yield _surveyed(jobs, found)


def that_wait(jobs: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the rows of `jobs` that are in one of the states READY: a reader may return others too."""
    wanted = pc.is_in(jobs.column("state"), READY_VALUES)
    return jobs if pc.all(wanted, min_count=0).as_py() else jobs.filter(wanted)


def is_late(jobs: pa.RecordBatch) -> pa.Array:
    """Returns which of these rows of `jobs` are due later."""
    return pc.equal(jobs.column("state"), "delayed")


def _rows(jobs: pa.RecordBatch) -> Iterator[Waiting]:
    """Yields the rows. Times are cast first: Arrow takes longer to make a datetime than all that is done with it."""
    columns = [jobs.column(name) for name in Waiting._fields]
    values = [(one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one).to_pylist() for one in columns]
    return map(Waiting._make, zip(*values, strict=True))


class Examined(NamedTuple):
    """The findings about one job, in the columns of SURVEYED that have these names."""

    level: int
    scheduled: bool = False
    target: str | None = None
    name: str | None = None
    payload: bytes | None = None
    attempts: int | None = None
    unique_key: str | None = None
    options: str | None = None
    content: str | None = None
    lost: str = ""
    hindrance: str | None = None
    reason: str | None = None


class Examination:
    """Examines jobs one by one. Remembers what most jobs of a queue have in common."""

    def __init__(self, survey: Survey, backend: Backend, target: Dialect) -> None:
        """`target` is the dialect of the backend."""
        self._survey = survey
        self._backend = backend
        self._source, self._target = dialect_of(survey.source), target
        self._protocol = backend.capabilities.protocol
        self._names, self._unique, self._attempts = (
            backend.capabilities.has(feature) for feature in (Feature.JOB_NAMES, Feature.UNIQUE, Feature.ATTEMPTS)
        )
        self._options = OptionChecks(backend, survey.to_queue)
        self._levels: dict[int | None, int] = {}

    def of(self, job: Waiting) -> Examined:
        level = self._levels.get(job.priority)
        if level is None:
            level = self._levels[job.priority] = self._source.level(job.priority)
        if job.malformed is not None:
            return Examined(level, hindrance="malformed", reason=job.malformed)
        survey, raw, late = self._survey, _raw(job.raw), job.state == "delayed"
        about = {"id": job.id, "native_state": job.native_state, "unique_key": job.unique_key}
        key = self._source.schedule_key(about, raw)
        name = job.name if job.name not in (None, "", survey.queue) else None
        unique = job.unique_key if key is None else None
        lost: list[str] = []
        if name is not None and not self._names:
            lost.append("names")
        if job.parent is not None:
            lost.append("parents")
        if unique is not None and not self._unique:
            lost.append("unique_keys")
        undecided = [what for what in lost if what not in survey.drop]
        name = name if "names" not in lost else None
        unique = unique if "unique_keys" not in lost else None
        carried, unknown = self._source.carried(raw)
        options = self._options.sorted_out(carried)
        attempts = job.attempts if self._attempts else None
        left = None if attempts is None else max(1, attempts - (job.attempts_made or 0))
        more = _more_lost(job.attempts, job.progress, self._attempts)
        created_at = None if job.created_at is None else moment(job.created_at)
        target = self._target.id_of_moved(survey.store, survey.queue, job.id, created_at)
        found = Examined(level, key is not None, target, name, None, left, unique, options.text, None)
        if lost or options.left or unknown or more:
            found = found._replace(lost=",".join([*lost, *options.left, *unknown, *more]))
        try:
            data = codec.loads(cast(str, job.payload))
            encoded = codec.dumps(data)
            content = content_of(data, name if name != survey.to_queue else None)
            found = found._replace(payload=encoded, content=content)
            due = moment(job.run_at) if late and job.run_at is not None else None
            asked = Asked(target, name, encoded, left, unique, created_at, due, options.taken)
            moved_job(self._backend, self._target, survey.to_queue, asked)
        except JobwireError as error:
            return found._replace(hindrance="invalid", reason=str(error))
        if undecided:
            return found._replace(hindrance=undecided[0], reason=f"{self._protocol} has no {_WORDS[undecided[0]]}")
        if key is not None and (late or key in survey.left_schedules):
            return found._replace(hindrance="schedules", reason="the schedule makes it")
        return found


def mark_taken(target: QueueStore, rows: list[Examined]) -> None:
    """Marks the jobs whose ids the target holds already. Nothing has been copied yet, so they are other jobs."""
    movable = {row.target: number for number, row in enumerate(rows) if row.hindrance is None and row.target}
    for held in target.present(list(movable)) if movable else ():
        number = movable[held]
        rows[number] = rows[number]._replace(hindrance="taken", reason="the target has a job with this id")


def _surveyed(jobs: pa.RecordBatch, found: Sequence[Examined]) -> pa.RecordBatch:
    """Returns rows of SURVEYED: what was found out about these jobs, and what they have anyway."""
    made = dict(zip(Examined._fields, zip(*found, strict=True), strict=True)) if found else {}
    as_they_are = {"own_priority": jobs.column("priority"), "late": is_late(jobs)}
    arrays = [
        pa.array(made.get(name, ()), kind)
        if name in Examined._fields
        else as_they_are[name]
        if name in as_they_are
        else jobs.column(name)
        for name, kind in zip(SURVEYED.names, SURVEYED.arrow.types, strict=True)
    ]
    return pa.record_batch(arrays, schema=SURVEYED.arrow)


_WORDS = {"names": "names of jobs beside the queue's", "unique_keys": "unique keys", "parents": "parents of moved jobs"}


def _more_lost(attempts: int | None, progress: str | None, per_job_attempts: bool) -> Sequence[str]:
    if progress in (None, "0", "null") and (per_job_attempts or (attempts or 1) <= 1):
        return ()
    lost = ["attempts"] if not per_job_attempts and (attempts or 1) > 1 else []
    return lost if progress in (None, "0", "null") else [*lost, "progress"]


def _raw(text: str | None) -> dict[str, Any]:
    value = codec.loads(text) if text else {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
