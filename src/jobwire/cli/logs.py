"""The log of `jobwire worker`: a line per event with the worker's id, on stderr, or JSON on stdout."""

from __future__ import annotations

import logging
import sys

from jobwire.observe.logging import JobLog, JsonFormatter

__all__ = ["JobLog", "Lines", "set_up"]


def set_up(worker_id: str, *, as_json: bool) -> None:
    """Sends all log records from INFO on to stderr, or as JSON to stdout."""
    handler = logging.StreamHandler(sys.stdout if as_json else sys.stderr)
    handler.setFormatter(JsonFormatter(worker_id) if as_json else Lines(worker_id))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class Lines(logging.Formatter):
    """Formats a record as `12:30:01 INFO    [worker id] text`, also those of handlers and other libraries."""

    def __init__(self, worker_id: str) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
        self._prefix = f"[{worker_id}] "

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        if not record.message.startswith(self._prefix):
            record.message = self._prefix + record.message
        return super().formatMessage(record)
