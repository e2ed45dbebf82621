"""Writes the report's tables as CSV and JSON, for further use."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import orjson
import pandas as pd

from jobwire.pipeline.report.frames import Frame


def export(tables: Mapping[str, Frame], folder: Path) -> list[Path]:
    """Writes `<table>.csv` and `<table>.json` of each table. Sketches are left out: they are for merging."""
    written: list[Path] = []
    for name, table in tables.items():
        readable = table[[column for column in table if not str(column).endswith("_sketch")]]
        texts = readable.copy()
        for column in texts:
            texts[column] = pd.Series([_plain(value) for value in texts[column]], index=texts.index, dtype=object)
        as_csv, as_json = folder / f"{name}.csv", folder / f"{name}.json"
        texts.to_csv(as_csv, index=False)
        as_json.write_bytes(orjson.dumps(texts.to_dict("records"), option=orjson.OPT_SERIALIZE_NUMPY))
        written += [as_csv, as_json]
    return written


def _plain(value: Any) -> Any:
    """Returns times as ISO texts in UTC, and missing values as None."""
    if value is None or value is pd.NaT or (isinstance(value, float) and pd.isna(value)):
        return None
    if isinstance(value, datetime):
        aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return aware.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value
