"""Turns a row of a DataFrame into a job, with an id that a second attempt finds again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, cast

from jobwire import codec
from jobwire.boundary import Backend, PreparedJob
from jobwire.errors import InvalidOption, JobwireError
from jobwire.options import NewJob, Unique
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


def job_of(
    backend: Backend, options: SourceOptions, row: Mapping[str, Any], scope: str, seen: Counter[str]
) -> PreparedJob:
    """Returns the job of a row. Raises JobwireError with the row's id, the field and the rule."""
    given = row.get("id")
    try:
        data = _data(row)
        if given is None:
            content = codec.dumps([data, *(str(row.get(name)) for name in JOB_COLUMNS[1:])]).decode()
            seen[content] += 1
            given = digest(scope, content, str(seen[content]))
        new = new_job(dialect_of(options.address.protocol), row, str(given), data)
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
        return {name: plain(value) for name, value in row.items() if name not in JOB_COLUMNS}
    payload = row["payload"]
    if payload is None:
        return None
    if not isinstance(payload, str):
        raise InvalidOption("payload", payload, "must be a JSON text")
    return codec.loads(payload.encode())


def plain(value: Any) -> Any:
    """Returns a value of a DataFrame as JSON can hold it: times and dates as ISO 8601. The codec refuses binary."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [plain(item) for item in cast("list[Any]", value)]
    return value
