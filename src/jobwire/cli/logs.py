"""The log of `jobwire worker`: one line an event, with the worker's id, on stderr; or as JSON on stdout."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from jobwire.backend import Claim, Failed, Outcome, Verdict

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "worker"}
logger = logging.getLogger("jobwire.jobs")


def set_up(worker_id: str, *, as_json: bool) -> None:
    """Send everything that is logged at INFO and above to where this command's output belongs."""
    handler = logging.StreamHandler(sys.stdout if as_json else sys.stderr)
    handler.setFormatter(JsonLines(worker_id) if as_json else Lines(worker_id))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class Lines(logging.Formatter):
    """`12:30:01 INFO    [worker id] text`, also for records of other libraries and of handlers."""

    def __init__(self, worker_id: str) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
        self._prefix = f"[{worker_id}] "

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        if not record.message.startswith(self._prefix):
            record.message = self._prefix + record.message
        return super().formatMessage(record)


class JsonLines(logging.Formatter):
    """A JSON object a line: at, level, logger, worker, message, what the record carries besides, and a traceback."""

    def __init__(self, worker_id: str) -> None:
        super().__init__()
        self._worker = worker_id

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "worker": getattr(record, "worker", self._worker),
            "message": record.getMessage().removeprefix(f"[{self._worker}] "),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class JobLog:
    """An observer that logs the end of each run."""

    def started(self, claim: Claim) -> None: ...

    def settled(self, outcome: Outcome, verdict: Verdict) -> None:
        level = logging.INFO if verdict is Verdict.COMPLETED else logging.WARNING
        job, took = outcome.claim.job, outcome.claim.run_seconds
        reason = f": {outcome.error}" if isinstance(outcome, Failed) else ""
        logger.log(
            level,
            "%s job %s (%s) after %.3f s%s",
            verdict.value, job.id, job.name, took, reason,
            extra={"job": job.id, "job_name": job.name, "queue": job.queue, "run_seconds": round(took, 6)},
        )  # fmt: skip
