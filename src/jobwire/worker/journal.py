"""The worker's log: stdlib logging, with the worker's id on every line and as a field of the record."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

logger = logging.getLogger("jobwire.worker")


class Journal(logging.LoggerAdapter[logging.Logger]):
    """Adds `worker` and `queue` to each record, and the worker's id to its text."""

    def __init__(self, worker_id: str, queue: str) -> None:
        super().__init__(logger, {"worker": worker_id, "queue": queue})
        self._prefix = f"[{worker_id}] "

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return f"{self._prefix}{msg}", kwargs
