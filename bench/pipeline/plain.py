"""The plain script of clients/ and its virtualenv, and the comparison of its answers with the lake's."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from bench.pipeline.places import ROOT

from jobwire.pipeline.lake.pointers import read_pointer, read_table

BENCH_VENV = ROOT / ".venv-bench-pipeline"
SCRIPT = Path(__file__).parent / "clients" / "with_duckdb.py"
DUCKDB = "duckdb==2.0.0"
SNAPSHOTS = "bronze/job_snapshots"
WITHIN = 0.02
"""The lake's percentiles are those of buckets that grow by 2 %."""


def python() -> Path:
    """The interpreter of a virtualenv with DuckDB."""
    found, ready = BENCH_VENV / "bin" / "python", BENCH_VENV / ".ready"
    if not ready.exists() or ready.read_text() != DUCKDB:
        venv.create(BENCH_VENV, with_pip=True, clear=True)
        (BENCH_VENV / ".gitignore").write_text("*\n")
        subprocess.run([found, "-m", "pip", "install", "--quiet", DUCKDB], check=True)
        ready.write_text(DUCKDB)
    return found


def run(root: Path, out: Path, cores: int, memory: str) -> dict[str, Any]:
    """The script over a lake's bronze; its answers are in `out`."""
    [source] = (root / "bronze" / "events").iterdir()
    [snapshots] = (root / SNAPSHOTS).iterdir()
    order = {
        "events": f"{source}/day=*/*.parquet",
        "snapshots": f"{read_pointer(str(root), f'{SNAPSHOTS}/{snapshots.name}').paths[0]}/*.parquet",
        "out": str(out),
        "cores": cores,
        "memory": memory.upper() + "B",
    }
    done = subprocess.run([python(), SCRIPT, json.dumps(order)], check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def compare(root: Path, out: Path) -> dict[str, int]:
    """Rows of each table, after making sure that both say the same."""
    compared = {
        "throughput_hourly": ("name", "hour"),
        "latency_hourly": ("name", "hour"),
        "failures_daily": ("name", "day", "error_class"),
    }
    rows: dict[str, int] = {}
    for table, key in compared.items():
        theirs = pq.read_table(out / f"{table}.parquet")
        measures = [name for name in theirs.column_names if name not in key]
        ours = read_table(str(root), f"gold/{table}")
        for column, kind in (("hour", pa.int64()), ("day", pa.int32())):
            if column in ours.column_names:
                place = ours.column_names.index(column)
                ours = ours.set_column(place, column, ours[column].cast(kind))
        mine, other = _by_key(ours, key, measures), _by_key(theirs, key, measures)
        assert mine.keys() == other.keys(), (table, sorted(mine.keys() ^ other.keys())[:5])
        for each, values in mine.items():
            assert _same(values, other[each]), (table, each, values, other[each])
        rows[table] = len(mine)
    return rows


def _by_key(table: pa.Table, key: tuple[str, ...], measures: list[str]) -> dict[Any, dict[str, int]]:
    rows: list[dict[str, Any]] = table.select([*key, *measures]).to_pylist()
    return {tuple(row[name] for name in key): {name: row[name] for name in measures} for row in rows}


def _same(ours: dict[str, int], theirs: dict[str, int]) -> bool:
    return all(
        abs(value - theirs[name]) <= (max(1, WITHIN * value) if "_p" in name else 0) for name, value in ours.items()
    )
