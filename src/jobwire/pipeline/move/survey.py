"""Looks at each job that waits, and says what it would be in the target or what stands in the way."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import pyarrow as pa

from jobwire import codec, urls
from jobwire.backoff import Backoff
from jobwire.boundary import Backend, Feature, PreparedJob
from jobwire.connection import load_backend
from jobwire.errors import JobwireError
from jobwire.options import Keep, NewJob, Unique
from jobwire.pipeline.ids import digest, native_id
from jobwire.pipeline.move.carried import options_of
from jobwire.pipeline.schemas import columns
from jobwire.preparing import prepare

SURVEYED = columns(
    "id string",
    "target string",  # the id that it will have
    "late boolean",  # due later, not ready
    "level bigint",  # of its priority, see order.py
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
    "hindrance string",  # names, unique_keys, parents, schedules, invalid, malformed; null: it can be moved
    "reason string",
    "lost string",  # what the target has no place for, separated by commas
)
"""What the survey says of a job. The manifest of a move holds these rows, and their rank."""

DROPPABLE = ("names", "unique_keys", "parents")
"""What a job can be moved without, if the operator says so."""


@dataclass(frozen=True)
class Survey:
    """Runs in Spark's processes over rows of `jobs` with `late` and `level`; touches no store."""

    source: str
    """The protocol that the jobs come from."""
    store: str
    queue: str
    to: str
    to_queue: str
    drop: frozenset[str]
    left_schedules: frozenset[str]
    """Keys of schedules that stay, and their jobs with them."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        backend = load_backend(urls.parse(self.to))
        checks = OptionChecks(backend, self.to_queue)
        for batch in batches:
            rows = [self.row(backend, checks, row) for row in cast("list[dict[str, Any]]", batch.to_pylist())]
            arrays = [
                pa.array([row[name] for row in rows], kind)
                for name, kind in zip(SURVEYED.names, SURVEYED.arrow.types, strict=True)
            ]
            yield pa.record_batch(arrays, schema=SURVEYED.arrow)

    def row(self, backend: Backend, checks: OptionChecks, job: Mapping[str, Any]) -> dict[str, Any]:
        """A row of SURVEYED."""
        can, protocol = backend.capabilities, urls.parse(self.to).protocol
        kept = ("id", "late", "level", "position", "native_state", "run_at", "created_at")
        row: dict[str, Any] = {**dict.fromkeys(SURVEYED.names), **{name: job[name] for name in kept}}
        row |= {"own_priority": job["priority"], "scheduled": False, "lost": ""}
        if job["malformed"] is not None:
            return row | {"hindrance": "malformed", "reason": job["malformed"]}
        raw = _raw(job["raw"])
        lost: list[str] = []
        key = schedule_key(self.source, job, raw)
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
        carried, left = checks.sorted_out(options_of(self.source, raw))
        made, attempts = job["attempts_made"] or 0, job["attempts"]
        row |= {
            "target": target_id(protocol, backend, self.to_queue, (self.store, self.queue, job)),
            "name": name if "names" not in lost else None,
            "unique_key": unique if "unique_keys" not in lost else None,
            "attempts": max(1, attempts - made) if can.has(Feature.ATTEMPTS) and attempts is not None else None,
            "options": codec.dumps(_plain(carried)).decode(),
            "lost": ",".join([*lost, *left, *_more_lost(job, can.has(Feature.ATTEMPTS))]),
        }
        try:
            data = codec.loads(job["payload"])
            row["payload"] = codec.dumps(data).decode()
            row["content"] = content_of(data, row["name"] if row["name"] != self.to_queue else None)
            moved_job(backend, protocol, self.to_queue, row)
        except JobwireError as error:
            return row | {"hindrance": "invalid", "reason": str(error)}
        if undecided:
            return row | {"hindrance": undecided[0], "reason": f"{can.protocol} has no {_WORDS[undecided[0]]}"}
        if key is not None and (row["late"] or key in self.left_schedules):
            return row | {"hindrance": "schedules", "reason": "the schedule makes it"}
        return row


_WORDS = {"names": "names of jobs beside the queue's", "unique_keys": "unique keys", "parents": "parents of moved jobs"}


class OptionChecks:
    """Which of a job's options the target takes; most jobs of a queue have the same ones."""

    def __init__(self, backend: Backend, queue: str) -> None:
        self._backend = backend
        self._queue = queue
        self._known: dict[tuple[str, Any], bool] = {}

    def sorted_out(self, options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Those that it takes, and the names of the others."""
        taken = {name: value for name, value in options.items() if self._takes(name, value)}
        return taken, [name for name in options if name not in taken]

    def _takes(self, name: str, value: Any) -> bool:
        known = self._known.get((name, value))
        if known is None:
            try:
                prepare(self._backend, self._queue, NewJob(None, **{name: value}), None)
                known = True
            except JobwireError:
                known = False
            self._known[name, value] = known
        return known


def schedule_key(protocol: str, job: Mapping[str, Any], raw: Mapping[str, Any]) -> str | None:
    """The key of the schedule that made the job, or that it is."""
    match protocol:
        case "bullmq":
            return raw.get("rjk")
        case "monque":
            return (job["unique_key"] or job["id"]) if raw.get("repeatInterval") else None
        case "bridgemq":
            schedule = raw.get("schedule")
            if job["native_state"] == "cron" or (isinstance(schedule, dict) and "cron" in schedule):
                private = raw.get("x")
                return str(private.get("cronKey") or job["id"]) if isinstance(private, dict) else job["id"]
            return None
        case _:
            return None


def target_id(protocol: str, backend: Backend, queue: str, job: tuple[str, str, Mapping[str, Any]]) -> str:
    """Its own id if the target takes it, else one derived from where it comes from; always the same."""
    store, source, row = job
    own = row["id"]
    if native_id(protocol, own) == own:
        try:
            prepare(backend, queue, _with_id(protocol, own, None), None)
            return own
        except JobwireError:
            pass  # a name that the protocol needs for itself
    created = row["created_at"]
    # A queue that was emptied may number its jobs from 1 again: the time tells the two apart.
    return native_id(protocol, digest(store, source, own, str(_ms(created)) if created else ""))


def _with_id(protocol: str, identity: str, data: Any, **more: Any) -> NewJob:
    if protocol in ("pgboss", "monque"):
        return NewJob(data, extra={**more.pop("extra", {}), "id": identity}, **more)
    return NewJob(data, id=identity, **more)


def moved_job(
    backend: Backend, protocol: str, queue: str, row: Mapping[str, Any], priority: int | None = None
) -> PreparedJob:
    """The job that a surveyed row will be."""
    more = _rich(codec.loads(row["options"]))
    due: datetime | None = row["run_at"] if row["late"] else None
    created: datetime | None = row["created_at"]
    if protocol == "bullmq" and created is not None:
        # BullMQ counts a delay from the job's own time, to the millisecond, so that both are kept exactly.
        more["extra"] = {"timestamp": _ms(created)}
        if due is not None and _ms(due) > _ms(created):
            more["delay"] = timedelta(milliseconds=_ms(due) - _ms(created))
    elif due is not None:
        more["run_at"] = due
    new = _with_id(
        protocol,
        row["target"],
        codec.loads(row["payload"]),
        name=row["name"],
        priority=priority,
        attempts=row["attempts"],
        unique=Unique(row["unique_key"]) if row["unique_key"] else None,
        **more,
    )
    return prepare(backend, queue, new, None)


def content_of(data: Any, name: str | None) -> str:
    """A digest that is the same for every spelling of the same JSON: PostgreSQL orders keys anew."""
    return hashlib.sha256(codec.dumps([_in_order(data), name])).hexdigest()


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: _in_order(fields[key]) for key in sorted(fields)}
    if isinstance(value, list):
        return [_in_order(item) for item in cast("list[Any]", value)]
    return value


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


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
