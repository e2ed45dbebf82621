"""The log of the demo's workers: everything goes to a file, and unexpected warnings also to stderr."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_FILE = "workers.log"


@contextmanager
def worker_log(folder: Path) -> Generator[Path]:
    """Logs to a file in this folder. Failed runs are logged only there, since some jobs fail on purpose."""
    path = folder / _FILE
    file = logging.FileHandler(path, mode="w", encoding="utf-8")
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))
    screen = logging.StreamHandler()
    screen.setLevel(logging.WARNING)
    screen.addFilter(_is_not_of_a_run)
    logger = logging.getLogger("jobwire")
    before = logger.level
    logger.setLevel(logging.INFO)
    for handler in (file, screen):
        logger.addHandler(handler)
    try:
        yield path
    finally:
        logger.setLevel(before)
        for handler in (file, screen):
            logger.removeHandler(handler)
        file.close()


def _is_not_of_a_run(record: logging.LogRecord) -> bool:
    return not hasattr(record, "attempt")
