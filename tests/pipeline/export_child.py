"""Exports a lake and kills itself at a given moment: `export_child.py LAKE TO FORMAT MOMENT TABLE`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

from jobwire.pipeline.export import export_tables
from jobwire.pipeline.export.changes import Changes

lake, to, table_format, moment, table = sys.argv[1:]
whole = Changes._batches


def killed(changes: Changes) -> Iterator[Any]:
    batches = whole(changes)
    if changes.pointer.table != table:
        yield from batches
        return
    yield next(batches)
    if moment == "in the middle of the rows":
        os.kill(os.getpid(), signal.SIGKILL)
    yield from batches
    os.kill(os.getpid(), signal.SIGKILL)  # all rows were read, and the commit is not there


Changes._batches = killed  # type: ignore[method-assign]
export_tables(lake, to, table_format)  # type: ignore[arg-type]
