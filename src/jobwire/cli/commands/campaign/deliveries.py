"""The CSV file of `jobwire campaign report --deliveries`: who got what."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from jobwire.campaigns import Delivery

COLUMNS = ("username", "status", "attempts", "sent_at", "failed_at", "error_message", "channel_id", "job_id")


@contextmanager
def new_file(file: Path) -> Generator[Callable[[Sequence[Delivery]], None]]:
    """Yields a function that appends deliveries. The file is written under another name beside its own and renamed
    at the end, so that it is never half complete. An existing file is replaced. A pipe or device, such as /dev/stdout,
    is written to directly."""
    if file.is_dir() or (file.exists() and not file.is_file()):
        with _written(file) as write:
            yield write
        return
    final = file.resolve()
    partial = final.with_name(f"{final.name}.{os.getpid()}.part")
    try:
        with _written(partial) as write:
            yield write
        partial.replace(final)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(partial):
            error.filename = str(file)
        raise


@contextmanager
def _written(file: Path) -> Generator[Callable[[Sequence[Delivery]], None]]:
    with file.open("w", newline="", encoding="utf-8") as opened:
        rows = csv.writer(opened)
        rows.writerow(COLUMNS)
        yield lambda page: rows.writerows([_cell(getattr(one, name)) for name in COLUMNS] for one in page)


def _cell(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
