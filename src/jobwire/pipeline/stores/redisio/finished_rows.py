"""Reads rows of the table `jobs` that are to be stored as finished jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from jobwire import codec
from jobwire.errors import InvalidOption
from jobwire.model import State

_TIMES = ("created_at", "run_at", "started_at", "finished_at")
_FINISHED = frozenset(state.value for state in State if state.finished)


@dataclass(frozen=True)
class Finished:
    """A finished job to be stored. Times are milliseconds."""

    id: str
    name: str
    completed: bool
    attempts: int
    attempts_made: int
    payload: str
    result: str | None
    error: str | None
    stacktrace: str | None
    progress: str | None
    created: int
    started: int | None
    finished: int
    worker: str | None
    priority: int
    unique_key: str | None
    raw: dict[str, Any]
    """Native fields of the store that it came from."""


def finished_jobs(batch: pa.RecordBatch) -> Iterator[Finished]:
    """Yields the batch's jobs. Raises InvalidOption for one that has not finished or could not be read."""
    table: dict[str, Any] = {name: batch.column(name) for name in batch.schema.names}
    for name in _TIMES:
        table[name] = table[name].cast(pa.int64())
    columns = {name: column.to_pylist() for name, column in table.items()}
    for number in range(batch.num_rows):
        yield _job({name: values[number] for name, values in columns.items()})


def _job(row: dict[str, Any]) -> Finished:
    if row["state"] not in _FINISHED or row["malformed"] is not None:
        rule = f"must be finished and sound (job {row['id']}: {row['malformed'] or row['state']})"
        raise InvalidOption("state", row["state"], rule)
    times = {name: None if row[name] is None else row[name] // 1000 for name in _TIMES}
    created = times["created_at"] or 0
    cancelled = row["state"] == State.CANCELLED
    return Finished(
        id=row["id"],
        name=row["name"] or "",
        completed=row["state"] == State.COMPLETED,
        attempts=row["attempts"] or 1,
        attempts_made=row["attempts_made"] or 0,
        payload="null" if row["payload"] is None else row["payload"],
        result=row["result"],
        error="cancelled" if cancelled and row["error"] is None else row["error"],
        stacktrace=row["stacktrace"],
        progress=row["progress"],
        created=created,
        started=times["started_at"],
        finished=times["finished_at"] or times["started_at"] or created,
        worker=row["worker"],
        priority=row["priority"] or 0,
        unique_key=row["unique_key"],
        raw=_object(row["raw"]),
    )


def _object(text: str | None) -> dict[str, Any]:
    found = codec.loads(text.encode()) if text else {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
