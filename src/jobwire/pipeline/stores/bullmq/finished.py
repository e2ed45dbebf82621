"""Stores finished jobs in a queue: restored from an archive, or moved from another store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from jobwire import codec
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.redisio.scripts import Argument
from jobwire.pipeline.stores.bullmq.dialect import DIALECT
from jobwire.pipeline.stores.redisio.connection import RedisConnection
from jobwire.pipeline.stores.redisio.finished_rows import Finished, finished_jobs
from jobwire.pipeline.stores.redisio.scripts import load

_STEP_JOBS, _STEP_BYTES = 200, 4 * 1024 * 1024
_PRESENT_STEP = 2_000
_OWN_FIELDS = frozenset(("opts", "delay", "ats"))
"""At least one of these is in the `raw` of every BullMQ job, and of no other protocol's."""


def present(connection: RedisConnection, keys: Keys, ids: Sequence[str]) -> Collection[str]:
    """Returns the ids that exist, by a field that every job has, so that the queue's own keys don't count as jobs."""
    found: set[str] = set()
    for start in range(0, len(ids), _PRESENT_STEP):
        some = ids[start : start + _PRESENT_STEP]
        answers = connection.calls([("HEXISTS", keys.job(job_id), "timestamp") for job_id in some])
        found.update(job_id for job_id, answer in zip(some, answers, strict=True) if answer == 1)
    return found


def payloads(connection: RedisConnection, keys: Keys, ids: Sequence[str]) -> Mapping[str, str]:
    """Returns the payloads of the jobs that exist, whatever their bytes are."""
    found: dict[str, str] = {}
    for start in range(0, len(ids), _PRESENT_STEP):
        some = ids[start : start + _PRESENT_STEP]
        answers = connection.calls([("HGET", keys.job(job_id), "data") for job_id in some])
        found |= {
            job_id: answer.decode(errors="backslashreplace")
            for job_id, answer in zip(some, answers, strict=True)
            if isinstance(answer, bytes)
        }
    return found


def put(connection: RedisConnection, keys: Keys, jobs: pa.RecordBatch) -> int:
    script = load(__package__ or "", "put_finished", "jobwire.backends.bullmq")
    args: list[Argument] = []
    number = size = new = 0
    for job in finished_jobs(jobs):
        its = _arguments(job)
        args += its
        number += 1
        size += sum(len(each) for each in its if isinstance(each, (str, bytes)))
        if number == _STEP_JOBS or size >= _STEP_BYTES:
            new += connection.run(script, keys.base, args)
            args, number, size = [], 0, 0
    return new + (connection.run(script, keys.base, args) if args else 0)


def _arguments(job: Finished) -> list[Argument]:
    ours = not _OWN_FIELDS.isdisjoint(job.raw)
    job_id = job.id if ours else DIALECT.native_id(job.id)
    fields = _own_fields(job) if ours else _foreign_fields(job)
    sides = {name: items for name, value in job.raw.items() if ours and (items := _items(name, value))}
    flat: list[Argument] = [job_id, "completed" if job.completed else "failed", job.finished, 2 * len(fields)]
    for name, value in fields.items():
        flat += (name, value)
    flat.append(len(sides))
    for name, items in sides.items():
        flat += (name, len(items), *items)
    return flat


def _items(ending: str, value: Any) -> list[str]:
    """Returns a side key's content as its command takes it."""
    if isinstance(value, list):
        return [str(each) for each in value]
    if not ending.startswith(":") or not isinstance(value, dict):
        return []
    turned = ending == ":unsuccessful"
    return [str(each) for pair in value.items() for each in (reversed(pair) if turned else pair)]


def _own_fields(job: Finished) -> dict[str, Argument]:
    """Returns the fields that `raw` holds, and the rest from the columns."""
    raw: dict[str, Argument] = {name: value for name, value in job.raw.items() if isinstance(value, str)}
    columns: dict[str, Argument | None] = {
        "name": job.name,
        "data": job.payload,
        "timestamp": job.created,
        "priority": job.priority,
        "deid": job.unique_key,
        "processedOn": job.started,
        "pb": job.worker,
        "atm": job.attempts_made or None if "attemptsMade" not in raw else None,
        "progress": job.progress,
        "failedReason": job.error,
        "stacktrace": None if job.stacktrace is None else codec.dumps([job.stacktrace]),
        "returnvalue": job.result,
        "finishedOn": job.finished,
    }
    return {name: value for name, value in columns.items() if value is not None} | raw


def _foreign_fields(job: Finished) -> dict[str, Argument]:
    """Returns the fields that Node would have stored. Priorities of other protocols mean something else, and nothing to
    a job that has run."""
    columns: dict[str, Argument | None] = {
        "name": job.name,
        "data": job.payload,
        "opts": codec.dumps({"attempts": job.attempts if job.attempts > 1 else 0}),
        "timestamp": job.created,
        "delay": 0,
        "priority": 0,
        "processedOn": job.started,
        "pb": job.worker,
        "ats": job.attempts_made or 1,
        "atm": job.attempts_made or 1,
        "progress": job.progress,
        "finishedOn": job.finished,
    }
    if job.completed:
        columns["returnvalue"] = job.result if job.result is not None else "null"
    else:
        columns["failedReason"] = job.error or ""
        columns["stacktrace"] = codec.dumps([job.stacktrace] if job.stacktrace else [])
    return {name: value for name, value in columns.items() if value is not None}
