"""The log of a worker, or of claims by hand: stdlib logging, with the worker's id in every line and record."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import traceback
from collections.abc import Collection, MutableMapping
from contextvars import ContextVar
from itertools import islice
from typing import Any

from jobwire.boundary import Claim, Failed
from jobwire.failure import loggable, printable

_LONGEST_REASON = 500
"""Characters of an error in a line of the log. The traceback below it has the whole error."""

logger = logging.getLogger("jobwire.worker")

working: ContextVar[str | None] = ContextVar("jobwire_worker", default=None)
"""The id of the worker that this code runs in: in its handlers, observers and strategies."""


class Journal(logging.LoggerAdapter[logging.Logger]):
    """Adds `worker` and `queue` to each record, and the worker's id to its text. With `names_queue` the text also has
    the queue, for a worker of several."""

    def __init__(self, worker_id: str, queue: str, *, names_queue: bool = False) -> None:
        super().__init__(logger, {"worker": worker_id, "queue": queue})
        self.worker_id = worker_id
        self._prefix = f"[{worker_id}] {queue}: " if names_queue else f"[{worker_id}] "

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return f"{self._prefix}{msg}", kwargs

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Logs as usual. If a handler or filter of the application raises, or the exception that is to be logged, the
        error is printed, as `logging` does, and not raised in the worker."""
        try:
            super().log(level, msg, *args, **kwargs)
        except BaseException:  # also SystemExit: an exception of the user's code may raise it while it is formatted
            if logging.raiseExceptions:
                with contextlib.suppress(BaseException):
                    traceback.print_exc()

    def failed(self, failed: Failed, error: BaseException | None = None) -> None:
        """Logs a failed run with its traceback, as an ERROR, so that error trackers that listen to logging see it."""
        job = failed.claim.job
        about = {**fields_of(failed.claim, final=failed.final), "error": failed.kind}
        attempt = about["attempt"]
        text = "job %s (%s) failed before attempt %d: %s" if error is None else "job %s (%s) failed in attempt %d: %s"
        reason = f"{failed.kind}: {failed.error}" if failed.kind not in ("", failed.error) else failed.error
        if len(reason) > _LONGEST_REASON:
            reason = reason[:_LONGEST_REASON] + "…"
        if error is None or loggable(failed.stack):
            self.error(text, job.id, job.name, attempt, printable(reason), exc_info=error, extra=about)
        else:
            text += "\n%s"
            self.error(text, job.id, job.name, attempt, printable(reason), printable(failed.stack), extra=about)


def fields_of(claim: Claim, *, final: bool | None = None) -> dict[str, Any]:
    """Returns the fields of a record about one run of a job. `final` gives the category of its error, if it has one."""
    job = claim.job
    fields: dict[str, Any] = {"queue": job.queue, "job": job.id, "job_name": job.name, "attempt": job.attempts_made + 1}
    if (worker := working.get()) is not None:
        fields["worker"] = worker
    if final is not None:
        fields["category"] = "permanent" if final else "transient"
    return fields


def few(ids: Collection[str], most: int = 5) -> str:
    """Returns the first few ids for a line of the log.

    >>> few(["7", "9"]), few("abcdefg")
    ('7, 9', 'a, b, c, d, e, …')
    """
    return ", ".join(islice(ids, most)) + (", …" if len(ids) > most else "")


def new_worker_id() -> str:
    """Returns an id that no other worker has: host, process and a random part."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
