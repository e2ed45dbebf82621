"""Structured logs: one JSON object per line, and one line per run of a job.

handler = logging.StreamHandler()
handler.setFormatter(JsonFormatter())
logging.basicConfig(level=logging.INFO, handlers=[handler])
Worker("emails", handle, url, observers=[JobLog()])
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from jobwire.boundary import Claim, Failed, Outcome, Verdict
from jobwire.failure import printable
from jobwire.journal import fields_of

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "worker"}
logger = logging.getLogger("jobwire.jobs")


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: at, level, logger, worker, message, its extra fields, and a traceback.

    Records without a worker, from handlers and other libraries, get `worker_id` if it is given.
    """

    def __init__(self, worker_id: str | None = None) -> None:
        super().__init__()
        self._worker = worker_id

    def format(self, record: logging.LogRecord) -> str:
        worker = getattr(record, "worker", self._worker)
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "worker": worker,
            "message": record.getMessage().removeprefix(f"[{worker}] "),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if worker is None:
            del line["worker"]
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, skipkeys=True)


class JobLog:
    """An observer that logs each run: its start at DEBUG, a completion at INFO, any other verdict at WARNING."""

    def started(self, claim: Claim) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            job = claim.job
            logger.debug(
                "picked up job %s (%s), attempt %d",
                job.id, job.name, job.attempts_made + 1,
                extra=fields_of(claim),
            )  # fmt: skip

    def settled(self, outcome: Outcome, verdict: Verdict) -> None:
        level = logging.INFO if verdict is Verdict.COMPLETED else logging.WARNING
        job, took = outcome.claim.job, outcome.claim.run_seconds
        failed = isinstance(outcome, Failed)
        reason = f": {printable(outcome.error)}" if failed else ""
        final = verdict is Verdict.FAILED if failed else None
        logger.log(
            level,
            "%s job %s (%s) after %.3f s%s",
            verdict.value, job.id, job.name, took, reason,
            extra={**fields_of(outcome.claim, final=final), "run_seconds": round(took, 6)},
        )  # fmt: skip
