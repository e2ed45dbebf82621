"""Stores finished jobs as rows of pg-boss: restored, or moved from another store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import orjson
import pyarrow as pa

from jobwire.backends.pgboss.codec import CAN_NOT_HOLD, failure_output, output_of, storable
from jobwire.errors import InvalidOption
from jobwire.model import State
from jobwire.pipeline.stores.pgboss.database import Database
from jobwire.pipeline.stores.pgboss.dialect import DIALECT
from jobwire.pipeline.stores.pgboss.table import QueueTable

_OURS = frozenset({"retry_limit", "retry_count", "keep_until"})
"""Fields that the `raw` of every job from pg-boss has."""

_FINISHED = frozenset(state.value for state in State if state.finished)


def put_finished(database: Database, table: QueueTable, queue: str, jobs: pa.RecordBatch) -> int:
    rows = [_row(table, queue, job) for job in cast("list[dict[str, Any]]", jobs.to_pylist())]
    if not rows:
        return 0
    columns = ", ".join(f'"{column}"' for column in table.columns)
    query = database.fitted("put_finished", job=table.name, columns=columns)
    new = {str(job_id) for (job_id,) in database.ask(query, [orjson.dumps(rows).decode()])}
    if table.has_side:
        progress = {
            row["id"]: job["progress"]
            for row, job in zip(rows, jobs.select(["progress"]).to_pylist(), strict=True)
            if job["progress"] is not None and row["id"] in new
        }
        if progress:
            database.ask(database.fitted("put_progress"), [queue, list(progress), list(progress.values())])
    return len(new)


def _row(table: QueueTable, queue: str, job: Mapping[str, Any]) -> dict[str, Any]:
    if job["state"] not in _FINISHED or job["malformed"] is not None:
        rule = f"must be finished and sound (job {job['id']}: {job['malformed'] or job['state']})"
        raise InvalidOption("state", job["state"], rule)
    raw = orjson.loads(job["raw"]) if job["raw"] else {}
    own = raw.keys() >= _OURS
    created = job["created_at"] or job["finished_at"] or datetime.now(UTC)
    row = {
        **_defaults(table, job, created),
        **(raw if own else {}),
        "id": DIALECT.native_id(job["id"]),
        "name": queue,
        "priority": min(max(job["priority"] or 0, -(2**31)), 2**31 - 1),
        "state": job["state"],
        "singleton_key": job["unique_key"],
        "created_on": created,
        "start_after": job["run_at"] or created,
        "started_on": job["started_at"],
        "completed_on": job["finished_at"] or created,
    }
    row = {column: row.get(column) for column in table.columns}
    row["data"] = _json("payload", job, job["payload"] or "null", null=None)
    if "output" not in raw or not own:
        row["output"] = _output(job)
    return row


def _defaults(table: QueueTable, job: Mapping[str, Any], created: datetime) -> dict[str, Any]:
    """Returns the native columns of a job from another protocol. Without a policy no unique index refuses it, as with
    pg-boss's own copies in dead letter queues."""
    made, allowed = job["attempts_made"] or 0, job["attempts"] or 1
    return {
        "retry_limit": max(allowed - 1, 0),
        "retry_count": max(made - 1, 0),
        "retry_delay": 0,
        "retry_backoff": False,
        "expire_seconds": table.expire_seconds,
        "deletion_seconds": table.deletion_seconds,
        "keep_until": created + timedelta(seconds=table.retention_seconds),
        "blocked": False,
        "blocking": False,
        "pending_dependencies": 0,
    }


def _output(job: Mapping[str, Any]) -> Any:
    if job["state"] == "completed":
        if job["result"] is None:
            return None
        return _json("result", job, output_of(job["result"].encode()).decode(), null=None)
    if job["error"] is None and job["stacktrace"] is None:
        return None
    return orjson.Fragment(failure_output(job["error"] or "", job["stacktrace"] or ""))


def _json(field: str, job: Mapping[str, Any], text: str, null: Any) -> Any:
    encoded = text.encode()
    if not storable(encoded):
        raise InvalidOption(field, job["id"], CAN_NOT_HOLD)
    return null if text == "null" else orjson.Fragment(encoded)
