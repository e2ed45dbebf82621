"""A DuckDB file of views over a lake, which any DuckDB client opens.

A view reads the table's pointer whenever it is queried, so it shows what is published then, and the file need not be
written again. DuckDB can't take a list of files from a query. So a view reads all files below the table's folder and
keeps the rows of those that the pointer names: files of the version before are read in vain. A table of days has no
files while it is empty, which DuckDB refuses. So a file with the columns and no rows is put beside its versions.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from jobwire.errors import JobwireError, MissingExtra
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import Pointer
from jobwire.pipeline.lake.schemas import RUNS as RUN_LOG
from jobwire.pipeline.lake.tables import columns_of, has_days
from jobwire.pipeline.sql.names import RUNS, published
from jobwire.pipeline.sql.scan import schema_of

_COLUMNS = "columns"
"""The folder of the file without rows, beside those of the versions."""
_STORAGE = "v1.0.0"
"""The oldest release of DuckDB that opens the file."""
_TIME = pa.timestamp("us")
_KINDS = {"string": "varchar", "bigint": "bigint", "timestamp": "timestamptz"}


def write_views(lake: str, file: str | os.PathLike[str]) -> list[str]:
    """Writes a DuckDB file with a view for each published table and for the run log, in place of one that is there.
    Returns the names of the views."""
    try:
        import duckdb  # noqa: PLC0415 an extra
    except ImportError:
        raise MissingExtra("SQL", "sql") from None

    files, target = LakeFiles(lake), Path(file).absolute()
    if not files.local:
        raise JobwireError(f"views need a lake in a folder, and {lake} is not one: `jobwire pipeline sql` reads it")
    if not target.parent.is_dir():
        raise JobwireError(f"{target} can't be written: there is no folder {target.parent}")
    _refuse_others(target)
    views = {name: _view(files, pointer) for name, pointer in published(lake).items()}
    if files.files(RUNS):
        columns = ", ".join(f"{name}: {_text(_KINDS[kind])}" for name, kind in RUN_LOG.fields)
        views[RUNS] = f"from read_json({_text(files.for_arrow(f'{RUNS}/*.json'))}, columns = {{{columns}}})"
    draft = target.with_name(f".{uuid.uuid4().hex}.new")
    try:
        with duckdb.connect(":memory:") as database:
            database.execute(f"attach {_text(str(draft))} as written (storage_version {_text(_STORAGE)})")
            for name, text in views.items():
                database.execute(f"create view written.{name} as {text}")
            database.execute("detach written")
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    return list(views)


def _refuse_others(target: Path) -> None:
    """Refuses to replace a file that is not DuckDB's: its name may be a mistake."""
    if target.is_dir():
        raise JobwireError(f"{target} is a folder: name a file for the views")
    if target.exists() and target.stat().st_size:
        with target.open("rb") as present:
            if present.read(12)[8:] != b"DUCK":
                raise JobwireError(f"{target} is there and is not a file of DuckDB: choose another name")


def _view(files: LakeFiles, pointer: Pointer) -> str:
    """Returns the query of a view."""
    folder = files.for_arrow(pointer.table)
    depth = "*/*/*.parquet" if has_days(pointer.table) else "*/*.parquet"
    if has_days(pointer.table):
        _write_columns(Path(folder) / _COLUMNS / _COLUMNS / "none.parquet", pointer)
    names = ", ".join(_column(name, kind) for name, kind in columns_of(pointer.table).fields)
    current = f"select {_text(folder + '/')} || unnest(content ->> '$.parts.*.folder')"
    pointed = f"{current} from read_text({_text(folder + '/_current.json')})"
    options = "filename = true, hive_partitioning = false, union_by_name = true"
    rows = f"read_parquet({_text(f'{folder}/{depth}')}, {options})"
    return f"select {names} from {rows} where parse_dirpath(filename) in ({pointed})"  # noqa: S608 - of literals


def _column(name: str, kind: str) -> str:
    """Returns the expression of a column. Spark writes times in UTC without stating the zone, and DuckDB would take
    them for times in the zone of its session."""
    return f"make_timestamptz(epoch_us({name})) as {name}" if kind == "timestamp" else name


def _write_columns(path: Path, pointer: Pointer) -> None:
    """Writes the file without rows. Its times have no zone: with one, DuckDB would convert those of other files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{uuid.uuid4().hex}.new")
    fields = [pa.field(one.name, _TIME if pa.types.is_timestamp(one.type) else one.type) for one in schema_of(pointer)]
    pq.write_table(pa.schema(fields).empty_table(), draft)
    os.replace(draft, path)


def _text(value: str) -> str:
    """Returns a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"
