"""A lake with published tables that no Spark has written: rows as dicts, through Arrow, in the form of the pipeline."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobwire.pipeline.lake import pointers
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import WHOLE, Part, Pointer
from jobwire.pipeline.lake.tables import GOLD_BY_DAY, columns_of, has_days
from pipeline.report_samples import MONDAY

STORE = "bullmq+redis://a"


def publish(
    root: str | Path, table: str, rows: Iterable[Mapping[str, Any]], replacing: Iterable[str] | None = None
) -> Pointer:
    """Publishes rows as a table, or as the given parts of one. A column that a row does not name is null."""
    files, columns = LakeFiles(str(root)), columns_of(table)
    before = pointers.load(files, table)
    generation = (0 if before is None else before.generation) + 1
    run = uuid.uuid4().hex[:8]
    by_part: dict[str, list[Mapping[str, Any]]] = {} if has_days(table) else {WHOLE: []}
    for row in rows:
        by_part.setdefault(_part(table, row), []).append(row)
    parts: dict[str, Part] = {}
    if before is not None and replacing is not None:
        parts = {key: part for key, part in before.parts.items() if key not in set(replacing)}
    for key, own in by_part.items():
        folder = f"v-{run}/part={key}" if has_days(table) else f"v-{run}"
        path = Path(files.for_arrow(f"{table}/{folder}"))
        path.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist([*map(dict, own)], columns.arrow), path / "part-0.parquet")
        parts[key] = Part(folder, len(own), hash(str(own)) % pointers.MODULUS, generation)
    pointer = Pointer(
        table=table,
        format="parquet",
        columns=columns.ddl,
        run=run,
        published_at=datetime.now(UTC).isoformat(),
        generation=generation,
        parts=dict(sorted(parts.items())),
        previous=() if before is None else before.folders,
        root=files.root,
    )
    assert pointers.save(files, pointer, pointers.load_versioned(files, table)[1])
    return pointer


def _part(table: str, row: Mapping[str, Any]) -> str:
    if not has_days(table):
        return WHOLE
    value = row[GOLD_BY_DAY.get(table, "day")]
    return (value.date() if isinstance(value, datetime) else value).isoformat()


def job(number: int, day: int = 0, **more: Any) -> dict[str, Any]:
    """A silver job of a day after Monday."""
    at = MONDAY + timedelta(days=day, minutes=number % 1440)
    state = "failed" if number % 5 == 0 else "completed"
    return {
        "store": STORE,
        "queue": "emails",
        "id": str(number),
        "name": "welcome",
        "state": state,
        "attempts_made": 1,
        "payload": f'{{"to": "größe-{number}@example.com"}}',
        "error": "ConnectionError: refused" if state == "failed" else None,
        "error_class": "ConnectionError" if state == "failed" else None,
        "created_at": at,
        "started_at": at + timedelta(seconds=2),
        "finished_at": at + timedelta(seconds=5, microseconds=123_457),
        "seen_at": at + timedelta(hours=1),
        "day": at.date(),
        **more,
    }


def run_of(job: Mapping[str, Any]) -> dict[str, Any]:
    """The one run of a job."""
    copied = ("store", "queue", "name", "started_at", "error", "error_class", "day")
    return {
        **{name: job[name] for name in copied},
        "job_id": job["id"],
        "attempt": 1,
        "ready_at": job["created_at"],
        "ended_at": job["finished_at"],
        "outcome": job["state"],
        "worker": "mail-1",
        "wait_ms": 2000,
        "run_ms": 3000,
        "forgotten": 0,
    }


def fill(root: str | Path, days: int = 3, jobs: int = 20) -> list[dict[str, Any]]:
    """Publishes jobs and runs of some days, with the gold tables that examples ask for. Returns the jobs."""
    made = [job(number + day * jobs, day) for day in range(days) for number in range(jobs)]
    publish(root, "silver/jobs", made)
    publish(root, "silver/attempts", [run_of(one) for one in made])
    publish(root, "silver/events", [])
    of_queue = {"store": STORE, "queue": "emails", "name": "welcome"}
    failed = [one for one in made if one["state"] == "failed"]
    publish(
        root,
        "gold/throughput_hourly",
        [
            {**of_queue, "hour": MONDAY + timedelta(days=day), "added": jobs, "started": jobs,
             "completed": sum(one["state"] == "completed" for one in made if one["day"] == day_of(day)),
             "failed": sum(one["day"] == day_of(day) for one in failed), "stalled": 0, "retried": 0}
            for day in range(days)
        ],
    )  # fmt: skip
    publish(
        root,
        "gold/latency_hourly",
        [
            {**of_queue, "hour": MONDAY + timedelta(days=day), "runs": jobs, "wait_p50": 1990, "wait_p95": 2010,
             "wait_p99": 2010, "run_p50": 2990, "run_p95": 3020, "run_p99": 3020, "wait_sketch": '{"384": 20}',
             "run_sketch": '{"405": 20}'}
            for day in range(days)
        ],
    )  # fmt: skip
    publish(
        root,
        "gold/failures_daily",
        [
            {**of_queue, "day": day_of(day), "error_class": "ConnectionError", "sample_error": "refused",
             "failures": sum(one["day"] == day_of(day) for one in failed),
             "jobs": sum(one["day"] == day_of(day) for one in failed)}
            for day in range(days)
        ],
    )  # fmt: skip
    publish(root, "gold/workers_hourly", [])
    publish(
        root,
        "gold/retries",
        [{**of_queue, "attempts": 1, "jobs": len(made), "succeeded": len(made) - len(failed), "share": 1.0}],
    )
    publish(root, "gold/quality", [
        {"check_name": "malformed rows", "store": STORE, "queue": "emails", "value": 0, "ok": True, "note": "left out"},
        {"check_name": "jobs", "store": STORE, "queue": "emails", "value": len(made), "ok": True, "note": "jobs"},
    ])  # fmt: skip
    publish(root, "gold/gaps", [])
    publish(root, "quarantine", [])
    return made


def day_of(day: int) -> Any:
    return (MONDAY + timedelta(days=day)).date()
