"""Values of a DataFrame in the form that a job's JSON has for them. The form of each type is fixed and documented in
docs/pipeline/index.md."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Returns the rows of a batch, with maps as dicts. Arrow takes much longer for that, so it is asked only if there
    are maps."""
    maps = any(_holds_map(field.type) for field in batch.schema)
    return cast("list[dict[str, Any]]", batch.to_pylist(maps_as_pydicts="strict") if maps else batch.to_pylist())


def _holds_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) or any(_holds_map(kind.field(number).type) for number in range(kind.num_fields))


def json_form(value: Any) -> Any:
    """Returns a value as JSON can hold it. What it does not know is returned as it is, and the codec refuses it.

    >>> json_form({"price": Decimal("12.50"), "raw": b"\\x00\\xff", "took": timedelta(hours=25, milliseconds=250)})
    {'price': '12.50', 'raw': 'AP8=', 'took': 'PT90000.25S'}
    """
    kind: type[Any] = type(value)
    form = _FORMS.get(kind)
    return value if form is None else form(value)


def _time(value: datetime) -> str:
    moment = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return moment.isoformat().replace("+00:00", "Z")


def _duration(value: timedelta) -> str:
    seconds = f"{Decimal(value // timedelta(microseconds=1)).scaleb(-6):f}"
    return f"PT{seconds.rstrip('0').rstrip('.')}S"


def _binary(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _key(key: Any) -> str:
    """Returns a key of a map. JSON's keys are texts: true and 7 become "true" and "7"."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else str(json_form(key))


def _object(value: dict[Any, Any]) -> dict[str, Any]:
    return {_key(key): json_form(item) for key, item in value.items()}


def _array(value: list[Any]) -> Any:
    if value and isinstance(value[0], tuple):  # a map inside a map, before Arrow 22
        return _object(dict(value))
    return [json_form(item) for item in value]


_FORMS: Mapping[type[Any], Callable[[Any], Any]] = {
    datetime: _time,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: _duration,
    Decimal: lambda value: f"{cast('Decimal', value):f}",
    bytes: _binary,
    dict: _object,
    list: _array,
}
