"""Turns rows of a source into jobs, or into the reasons why they can't be jobs. Runs in Spark's processes; touches no
store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import pyarrow as pa

from jobwire import codec
from jobwire.connection import load_backend
from jobwire.errors import InvalidOption, JobwireError
from jobwire.pipeline.datasource.json_forms import json_form, rows_of
from jobwire.pipeline.datasource.row_to_job import JOB_COLUMNS, job_of
from jobwire.pipeline.datasource.source_options import SourceOptions
from jobwire.pipeline.lake.schemas import columns
from jobwire.pipeline.load.csv_files import CORRUPT, UNDECODED
from jobwire.pipeline.stores.ids import digest

CONTENT, ORDINAL = "_content", "_ordinal"
"""Columns that are added to the source's own: a hash of the row, and its number among the rows that are equal to it."""

_NOT_UTF8 = "has bytes that are not UTF-8"

CHECKED = columns(
    "id string",
    "name string",
    "payload string",
    "priority bigint",
    "attempts int",
    "run_at timestamp",
    "unique_key string",
    "options string",
    "reason string",  # why the row can't become a job; null: it can
    "record string",  # the row as it was, if it can't
)


class CheckedRow(NamedTuple):
    """A row of CHECKED."""

    id: str | None
    name: str | None = None
    payload: str | None = None
    priority: int | None = None
    attempts: int | None = None
    run_at: datetime | None = None
    unique_key: str | None = None
    options: str | None = None
    reason: str | None = None
    record: str | None = None


@dataclass(frozen=True)
class Check:
    """The way in which a load reads rows. `mapping` names the source's column for a column of a job. With one for
    `payload`, columns without a meaning are left out. Otherwise they make up the payload."""

    options: SourceOptions
    run: str
    lines: bool
    mapping: Mapping[str, str] = field(default_factory=dict[str, str])
    private: bool = False
    """Nothing of a rejected row is kept but the reason, without the value."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        backend = load_backend(self.options.address)

        def check(row: dict[str, Any]) -> CheckedRow:
            content, ordinal = row.pop(CONTENT, None), row.pop(ORDINAL, None)
            identity: str | None = None
            try:
                if row.get(CORRUPT) is not None:
                    undecoded = UNDECODED in row[CORRUPT]
                    raise InvalidOption("record", row[CORRUPT], _NOT_UTF8 if undecoded else "does not fit the header")
                row.pop(CORRUPT, None)
                if self.lines:
                    row["value"] = _decoded(row["value"])
                asked = self.job_row(row)
                identity = asked["id"]
                if identity is None and content is not None:
                    identity = asked["id"] = digest(self.run, content, str(ordinal))
                if identity is None:
                    raise InvalidOption("id", None, "must not be null")
                job = job_of(backend, self.options, asked)
            except JobwireError as error:
                reason = str(error.__cause__ if isinstance(error.__cause__, JobwireError) else error)
                if self.private:
                    return CheckedRow(None, reason=reason.partition(" (got ")[0], record="{}")
                return CheckedRow(identity, reason=reason, record=_record(row))
            asked["payload"] = job.data.decode()
            return CheckedRow(**asked)

        for batch in batches:
            rows = rows_of(batch)
            checked = zip(*map(check, rows), strict=True) if rows else ([] for _ in CHECKED.names)
            arrays = [pa.array(values, kind) for values, kind in zip(checked, CHECKED.arrow.types, strict=True)]
            yield pa.record_batch(arrays, schema=CHECKED.arrow)

    def job_row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the row in the writer's columns, the payload as JSON text."""
        if self.lines:
            value = codec.loads(row["value"])
            if not isinstance(value, dict):
                return {**dict.fromkeys(JOB_COLUMNS), "payload": row["value"]}
            row = cast("dict[str, Any]", value)
        asked: dict[str, Any] = {}
        meant: set[str] = set()
        for name in JOB_COLUMNS:
            source = self.mapping.get(name, name)
            value = row.get(source)
            meant.add(source)
            asked[name] = value if value is None or name == "payload" else _CONVERT.get(name, _text)(name, value)
        payload = self.mapping.get("payload", "payload")
        if payload in row:
            if self.lines or not isinstance(row[payload], str):
                asked["payload"] = codec.dumps(json_form(row[payload])).decode()
        elif "payload" in self.mapping:
            raise InvalidOption("payload", None, f"is to come from {payload!r}, which this row does not have")
        else:
            data = {name: json_form(value) for name, value in row.items() if name not in meant}
            asked["payload"] = codec.dumps(data).decode()
        return asked


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise InvalidOption("record", line, _NOT_UTF8) from None


def _record(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str)


def _text(name: str, value: Any) -> str:
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise InvalidOption(name, value, "must be a text")


def _whole(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return int(value)
    except (TypeError, ValueError):
        raise InvalidOption(name, value, "must be a whole number") from None


def _moment(name: str, value: Any) -> datetime:
    rule = "must be a time such as 2026-01-31T12:00:00Z (without a zone: UTC)"
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidOption(name, value, rule) from None
    if not isinstance(value, datetime):
        raise InvalidOption(name, value, rule)
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _options(name: str, value: Any) -> str:
    found = codec.loads(value) if isinstance(value, str) else json_form(value)
    if not isinstance(found, dict):
        raise InvalidOption(name, value, 'must be a JSON object such as {"lifo": true}')
    return codec.dumps(found).decode()


_CONVERT: Mapping[str, Callable[[str, Any], Any]] = {
    "priority": _whole,
    "attempts": _whole,
    "run_at": _moment,
    "options": _options,
}
