"""Turns a row of a DataFrame into a job, with an id that a second attempt finds again."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from jobwire import codec
from jobwire.boundary import Backend, PreparedJob
from jobwire.errors import InvalidOption, JobwireError
from jobwire.options import NewJob, Unique
from jobwire.pipeline.datasource.json_forms import json_form
from jobwire.pipeline.datasource.source_options import SourceOptions
from jobwire.pipeline.stores.dialect import Dialect, dialect_of
from jobwire.pipeline.stores.ids import digest
from jobwire.preparing import prepare

JOB_COLUMNS = ("id", "name", "payload", "priority", "attempts", "run_at", "unique_key", "options")
"""Columns with a meaning. Without a `payload`, all other columns of a row together are the job's data."""


def check_columns(names: Sequence[str]) -> None:
    """Raises InvalidOption unless rows with these columns can become jobs."""
    if "payload" in names:
        unknown = sorted(set(names) - set(JOB_COLUMNS))
        if unknown:
            rule = f"has no meaning beside `payload`: drop it, or use {', '.join(JOB_COLUMNS)}"
            raise InvalidOption("column", unknown[0], rule)
    elif not set(names) - set(JOB_COLUMNS):
        raise InvalidOption("columns", list(names), "must hold `payload`, or columns that make up the job's data")


IdOf = Callable[[Mapping[str, Any], Any], str]
"""Returns the id of a row that has none of its own, from the row and the job's data."""


class Copies:
    """Derives ids from the contents of rows, in one partition of a write. Equal rows are numbered, so that each of
    them is a job. The ids depend on the contents alone: however the rows are divided into partitions, they are the
    same, as long as equal rows are in one partition. `contents` lets the driver check that."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._copies: Counter[bytes] = Counter()

    def id_of(self, row: Mapping[str, Any], data: Any) -> str:
        content = codec.dumps([data, *(str(row.get(name)) for name in JOB_COLUMNS[1:] if name != "payload")])
        hashed = hashlib.blake2b(content, digest_size=16).digest()
        self._copies[hashed] += 1
        return digest(self._scope, hashed.hex(), str(self._copies[hashed]))

    @property
    def contents(self) -> array[int]:
        """Returns a number of eight bytes for each content that the partition holds."""
        return array("q", (int.from_bytes(hashed[:8], "big", signed=True) for hashed in self._copies))


def _no_id(row: Mapping[str, Any], data: Any) -> str:
    raise InvalidOption("id", None, "must not be null")


def job_of(backend: Backend, options: SourceOptions, row: Mapping[str, Any], id_of: IdOf = _no_id) -> PreparedJob:
    """Returns the job of a row. Raises JobwireError with the row's id, the field and the rule."""
    given = row.get("id")
    try:
        data = _data(row)
        new = new_job(
            dialect_of(options.address.protocol), row, id_of(row, data) if given is None else str(given), data
        )
        return prepare(backend, options.queue, new, options.size_limit)
    except JobwireError as error:
        raise InvalidOption("row", given if given is not None else dict(row), str(error)) from error


def new_job(dialect: Dialect, row: Mapping[str, Any], given: str, data: Any) -> NewJob:
    """Returns what to ask the protocol for, for a row with this id and data."""
    more = cast("dict[str, Any]", codec.loads(row["options"].encode())) if row.get("options") else {}
    run_at = row.get("run_at")
    if isinstance(run_at, datetime) and run_at.tzinfo is None:
        run_at = run_at.replace(tzinfo=UTC)
    key = row.get("unique_key")
    return NewJob(
        data,
        id=dialect.native_id(given),
        name=row.get("name"),
        priority=row.get("priority"),
        run_at=run_at,
        attempts=row.get("attempts"),
        unique=Unique(key) if key else None,
        **more,
    )


def _data(row: Mapping[str, Any]) -> Any:
    if "payload" not in row:
        return {name: json_form(value) for name, value in row.items() if name not in JOB_COLUMNS}
    payload = row["payload"]
    if payload is None:
        return None
    if not isinstance(payload, str):
        raise InvalidOption("payload", payload, "must be a JSON text")
    return codec.loads(payload.encode())
