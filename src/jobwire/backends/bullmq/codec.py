"""Converts between BullMQ's stored form of a job and jobwire's model. Milliseconds and short names stay in here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from jobwire import codec
from jobwire.backends.bullmq.work.stored_options import StoredOptions, read_options
from jobwire.backoff import Backoff
from jobwire.checks import seconds
from jobwire.errors import MalformedPayload
from jobwire.model import Job, JobKey, State
from jobwire.options import Keep, NewJob, Parent, Unique

Raw = dict[str, bytes]
"""A job's hash: field names as text, values as they are stored."""

PLAIN_OPTS = b'{"attempts":0}'
"""The options of a job without any, and of no other job: code compares it with `is`."""
_PARENT_FLAGS = {"fail": "fpof", "continue": "cpof", "ignore": "idof", "remove": "rdof"}


class _FieldNames(dict[bytes, str]):
    """The names of fields as text. Those that are in every hash are decoded once, which saves a microsecond per job."""

    def __missing__(self, name: bytes) -> str:
        return name.decode(errors="replace")


_FIELDS = _FieldNames(
    (name.encode(), name)
    for name in (
        *("name", "data", "opts", "timestamp", "delay", "priority", "processedOn", "ats", "atm", "pb", "stc"),
        *("progress", "failedReason", "stacktrace", "returnvalue", "finishedOn", "parentKey", "parent", "rjk"),
        *("nrjid", "deid", "defa"),
    )
)
_field = _FIELDS.__getitem__


def to_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


@lru_cache(maxsize=256)
def from_ms(value: bytes | str | float | None) -> datetime | None:
    """Returns the time of stored milliseconds, or None if they are absent or not a valid time.

    >>> from_ms(b"1794734305684").isoformat()
    '2026-11-15T09:18:25.684000+00:00'
    """
    if value is None:
        return None
    try:
        return datetime.fromtimestamp(float(value) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def raw_fields(flat: Sequence[bytes]) -> Raw:
    """Returns the hash of a flat list in a script's reply."""
    return dict(zip(map(_field, flat[::2]), flat[1::2], strict=True))


def read_job(  # noqa: PLR0917 the state is not in the hash, so callers have to give it
    queue: str, job_id: str, raw: Raw, state: State, native_state: str = "", due_ms: float | None = None
) -> tuple[Job, str | None]:
    """Returns the job, and an error text if its data is missing or malformed. Other malformed fields count as absent,
    and a field that should be JSON and isn't is returned as text. `due_ms` is the time when a delayed job is due."""
    get = raw.get
    problem = None
    data: Any = None
    stored = get("data")
    if stored is None:
        problem = "the job's data is missing from the store" if "name" not in raw else None
    else:
        try:
            data = codec.loads(stored)
        except MalformedPayload as error:
            problem = f"the job's data can't be read: {error}"
    options = read_options(get("opts", b"{}"))
    name = get("name")
    atm = get("atm") or get("attemptsMade")
    timestamp = get("timestamp")
    progress, result, stack = get("progress"), get("returnvalue"), get("stacktrace")
    error_text, worker = get("failedReason"), get("pb")
    started, finished, parent = get("processedOn"), get("finishedOn"), get("parent")
    job = Job(  # given by position where the order is plain: a keyword of a class costs as much as its field
        job_id,
        queue,
        name.decode(errors="replace") if name is not None else "",
        data,
        state,
        native_state or state.value,
        integer(get("priority")),
        attempts=options.attempts if options.attempts > 1 else 1,
        attempts_made=integer(atm) if atm is not None else 0,
        progress=_json(progress) if progress is not None else None,
        result=_json(result) if result is not None else None,
        error=error_text.decode(errors="replace") if error_text is not None else None,
        stacktrace=stacks(raw) if stack is not None else (),
        created_at=from_ms(timestamp) if timestamp is not None else None,
        run_at=from_ms(due_ms) if due_ms is not None else _run_at(timestamp, get("delay")),
        started_at=from_ms(started) if started is not None else None,
        finished_at=from_ms(finished) if finished is not None else None,
        worker=worker.decode(errors="replace") if worker is not None else None,
        parent=_parent(parent) if parent is not None else None,
        raw=raw,
    )
    return job, problem


def _parent(stored: bytes) -> JobKey | None:
    """Returns the job that `parent` of a child names: `{"id": "7", "queueKey": "bull:books"}`."""
    found = _json(stored)
    fields = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    job_id, queue = fields.get("id"), fields.get("queueKey")
    # A queue's name has no colon, its prefix may have some.
    return JobKey(queue.rpartition(":")[2], job_id) if isinstance(job_id, str) and isinstance(queue, str) else None


def stacks(raw: Raw) -> tuple[str, ...]:
    """Returns one stack trace per failed run, oldest first."""
    found = _json(raw.get("stacktrace", b"[]"))
    if not isinstance(found, list):
        return ()
    return tuple(item if isinstance(item, str) else str(item) for item in cast(list[Any], found))


def options_of(raw: Raw) -> StoredOptions:
    return read_options(raw.get("opts", b"{}"))


def _run_at(timestamp: bytes | None, delay: bytes | None) -> datetime | None:
    if delay is None or delay == b"0" or timestamp is None:
        return None
    try:
        wait = float(delay)
        return from_ms(float(timestamp) + wait) if wait > 0 else None
    except ValueError:
        return None


def integer(value: bytes | None) -> int:
    if value is None or value == b"0":
        return 0
    try:
        return int(value)
    except ValueError:
        return 0


def _json(value: bytes) -> Any:
    try:
        return codec.loads(value)
    except MalformedPayload:
        return value.decode(errors="replace")


def milliseconds(delay: float) -> int:
    return round(delay * 1000)


def encode_opts(new: NewJob, delay_ms: int, prefix: str, parent: Parent | None = None) -> bytes:
    """Returns the `opts` of a new job: only options that were given, and `attempts`, which BullMQ always writes.

    >>> encode_opts(NewJob(None, priority=2, attempts=3, lifo=True), 0, "bull")
    b'{"priority":2,"lifo":true,"attempts":3}'
    """
    return codec.dumps(options_dict(new, delay_ms, prefix, parent), field="opts")


def options_dict(new: NewJob, delay_ms: int, prefix: str, parent: Parent | None = None) -> dict[str, Any]:
    """Returns the options of `encode_opts` before they are encoded. Schedules store the options of their jobs in the
    same form. `parent` is the parent that a job has by its position in a flow."""
    opts: dict[str, Any] = {}
    if new.id is not None:
        opts["jobId"] = new.id
    if new.delay is not None or new.run_at is not None:
        opts["delay"] = delay_ms
    if new.priority is not None:
        opts["priority"] = new.priority
    if new.lifo:
        opts["lifo"] = True
    if new.backoff is not None:
        opts["backoff"] = _backoff(new.backoff)
    if new.keep_completed is not None:
        opts["removeOnComplete"] = _remove_on(new.keep_completed)
    if new.keep_failed is not None:
        opts["removeOnFail"] = _remove_on(new.keep_failed)
    if new.unique is not None:
        opts["de"] = deduplication(new.unique)
    parent = parent or new.parent
    if parent is not None:
        opts["parent"] = {"id": parent.id, "queue": f"{prefix}:{parent.queue}"}
        if parent.on_failure in _PARENT_FLAGS:
            opts[_PARENT_FLAGS[parent.on_failure]] = True
    if new.extra:
        for option, stored_as in (
            ("stackTraceLimit", "stackTraceLimit"),
            ("keepLogs", "kl"),
            ("timestamp", "timestamp"),
        ):
            if option in new.extra:
                opts[stored_as] = new.extra[option]
        if "telemetry" in new.extra:
            opts["tm"] = new.extra["telemetry"]["metadata"]
    opts["attempts"] = new.attempts or 0
    return opts


def parent_fields(parent: Parent, prefix: str) -> tuple[str, bytes]:
    """Returns the parent's full key, and the `parent` JSON of its child."""
    queue = f"{prefix}:{parent.queue}"
    record: dict[str, Any] = {"id": parent.id, "queueKey": queue}
    if parent.on_failure in _PARENT_FLAGS:
        record[_PARENT_FLAGS[parent.on_failure]] = True
    return f"{queue}:{parent.id}", codec.dumps(record)


def _backoff(rule: Backoff) -> dict[str, Any]:
    stored: dict[str, Any] = {"type": rule.name or rule.kind, "delay": milliseconds(rule.delay)}
    if rule.jitter:
        stored["jitter"] = rule.jitter
    return stored


def _remove_on(keep: int | Keep) -> Any:
    """Returns BullMQ's option for the opposite: which finished jobs to remove."""
    if isinstance(keep, int):
        return keep
    if keep == Keep.NONE:
        return True
    rule: dict[str, Any] = {}
    if keep.count is not None:
        rule["count"] = keep.count
    if keep.age is not None:
        rule["age"] = seconds("keep.age", keep.age)
    return rule or False


def deduplication(unique: Unique) -> dict[str, Any]:
    """Returns the `de` option."""
    rule: dict[str, Any] = {"id": unique.key}
    if unique.ttl is not None:
        rule["ttl"] = milliseconds(seconds("unique.ttl", unique.ttl))
    if unique.extend:
        rule["extend"] = True
    if unique.replace:
        rule["replace"] = True
    return rule


def number(value: bytes | None) -> int | None:
    """Returns the stored whole number, or None if the value is absent or not a number."""
    try:
        return int(float(value)) if value is not None else None
    except (ValueError, OverflowError):
        return None
