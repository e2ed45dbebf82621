"""Stores finished jobs under a job type: restored from an archive, or moved from another store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from jobwire import codec as json_codec
from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.keys import check_job_id
from jobwire.backends.redisio.scripts import Argument
from jobwire.pipeline.stores.bridgemq.dialect import DIALECT
from jobwire.pipeline.stores.bridgemq.index import BACKEND, Index
from jobwire.pipeline.stores.bridgemq.rows import as_text
from jobwire.pipeline.stores.redisio.finished_rows import Finished, finished_jobs
from jobwire.pipeline.stores.redisio.scripts import load

_STEP_JOBS, _STEP_BYTES = 200, 4 * 1024 * 1024
_PRESENT_STEP = 2_000


def present(index: Index, ids: Sequence[str]) -> Collection[str]:
    """Returns the ids that belong to jobs of this type: a namespace has one set of ids for all types."""
    return set(_documents(index, ids))


def payloads(index: Index, ids: Sequence[str]) -> Mapping[str, str]:
    """Returns the payloads of those of the ids that belong to jobs of this type."""
    return {job_id: as_text(document.get("payload")) for job_id, document in _documents(index, ids).items()}


def _documents(index: Index, ids: Sequence[str]) -> dict[str, codec.Document]:
    found: dict[str, codec.Document] = {}
    for start in range(0, len(ids), _PRESENT_STEP):
        some = ids[start : start + _PRESENT_STEP]
        documents: list[Any] = index.connection.call("MGET", *(index.keys.data(job_id) for job_id in some))
        for job_id, data in zip(some, documents, strict=True):
            document = codec.parse(data) if data is not None else None
            if document is not None and document.get("type") == index.kind:
                found[job_id] = document
    return found


def put(index: Index, jobs: pa.RecordBatch) -> int:
    script = load(__package__ or "", "put_finished", BACKEND)
    head: list[Argument] = [index.connection.now_ms(), index.kind]
    args: list[Argument] = []
    number = size = new = 0
    for job in finished_jobs(jobs):
        its = _arguments(index.kind, job)
        args += its
        number += 1
        size += sum(len(each) for each in its if isinstance(each, (str, bytes)))
        if number == _STEP_JOBS or size >= _STEP_BYTES:
            new += index.connection.run(script, index.keys.base, [*head, *args])
            args, number, size = [], 0, 0
    return new + (index.connection.run(script, index.keys.base, [*head, *args]) if args else 0)


def _arguments(kind: str, job: Finished) -> list[Argument]:
    own: Any = job.raw.get("job")
    ours = isinstance(own, dict) and "jobId" in own
    job_id = job.id if ours else DIALECT.native_id(job.id)
    check_job_id(job_id)
    document = cast(codec.Document, own) if ours else _foreign_document(kind, job_id, job)
    document = {**document, "type": kind, "payload": json_codec.loads(job.payload)}
    result: Any = job.raw.get("result") if ours else None
    outcome = cast(codec.Document, result) if isinstance(result, dict) else _foreign_result(job)
    if job.completed:
        outcome = {**outcome, "data": None if job.result is None else json_codec.loads(job.result)}
    progress: Any = job.raw.get("progress") if ours else None
    lines: Any = job.raw.get("logs", []) if ours else []
    return [
        *(job_id, "completed" if job.completed else "dead", job.finished, as_text(document), as_text(outcome)),
        as_text(progress) if progress is not None else "",
        len(lines),
        *lines,
    ]


def _foreign_document(kind: str, job_id: str, job: Finished) -> codec.Document:
    """Returns the document that a producer of the protocol would have written. Priorities of other protocols mean
    something else, and nothing to a job that has run."""
    made = max(job.attempts_made, 1)
    return {
        "jobId": job_id,
        "type": kind,
        "payload": None,
        "schedule": {},
        "retry": {"attempts": job.attempts - 1},
        "priority": codec.DEFAULT_PRIORITY,
        "dependsOn": [],
        "target": {},
        "metadata": {},
        "createdAt": job.created,
        "attempts": made - 1 if job.completed else made,
    }


def _foreign_result(job: Finished) -> codec.Document:
    took = {"completedAt": job.finished, "processingTime": max(0, job.finished - (job.started or job.finished))}
    about = {name: value for name, value in (("worker", job.worker), ("startedAt", job.started)) if value is not None}
    if job.completed:
        return {"success": True, "data": None, **took, "x": about}
    error = {"message": job.error or "", "stack": job.stacktrace or "", "name": "Error"}
    return {"success": False, "error": error, **took, "x": about}
