"""Rows that a task returns: one for each run of a job, and one with the worker's report.

Under rules of privacy, the values that they cover in a job's payload are taken out of its row. They are gathered when
the run starts, since a handler may change the payload.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from jobwire.boundary import Claim, Failed, Outcome, Verdict
from jobwire.error_class import error_class
from jobwire.pipeline.lake.schemas import columns
from jobwire.pipeline.privacy.rules import QueueRules
from jobwire.pipeline.privacy.scrub import Scrubber
from jobwire.pipeline.work.private_runs import scrubbed, scrubber_of
from jobwire.pipeline.work.result import WorkerReport

_LONGEST_ERROR = 2_000

ROWS = columns(
    "report string",  # JSON of the worker's report, in the last row of its task; null in rows of runs
    "task int",
    "worker string",
    "job_id string",
    "name string",
    "attempt int",
    "verdict string",
    "error string",
    "error_class string",
    "started_at timestamp",
    "ended_at timestamp",
    "run_ms bigint",
)


class RunRow(NamedTuple):
    """A row of ROWS."""

    report: str | None
    task: int
    worker: str
    job_id: str | None = None
    name: str | None = None
    attempt: int | None = None
    verdict: str | None = None
    error: str | None = None
    error_class: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    run_ms: int | None = None


class RunRows:
    """An observer that keeps a row of each settled run until it is taken. Called in the worker's thread."""

    def __init__(self, task: int, rules: QueueRules | None = None) -> None:
        self._task, self._rules = task, rules
        self.worker = ""
        self._began: dict[Claim, float] = {}
        self._scrubbers: dict[Claim, Scrubber] = {}
        self._rows: list[RunRow] = []
        self._lock = threading.Lock()
        self.failures: Counter[str] = Counter()
        self.busy_seconds = 0.0

    def started(self, claim: Claim) -> None:
        self._began[claim] = time.time()
        if self._rules is not None:
            self._scrubbers[claim] = scrubber_of(claim.job.data, self._rules)

    def settled(self, outcome: Outcome, verdict: Verdict) -> None:
        claim = outcome.claim
        job, took = claim.job, claim.run_seconds
        began = self._began.pop(claim, None)
        job_id, name, text = job.id, job.name, outcome.error if isinstance(outcome, Failed) else None
        if self._rules is not None:
            scrub = self._scrubbers.pop(claim, None)
            scrub = scrubber_of(job.data, self._rules) if scrub is None else scrub
            job_id, name, text = scrubbed(self._rules, scrub, job_id, name, text)
        error = kind = None
        if isinstance(outcome, Failed) and text is not None:
            error = stored(text[:_LONGEST_ERROR])
            kind = error_class(f"{stored(outcome.kind)}: {error}" if outcome.kind else error)
        row = RunRow(
            report=None,
            task=self._task,
            worker=self.worker,
            job_id=stored(job_id),
            name=stored(name),
            attempt=job.attempts_made + 1,
            verdict=verdict.value,
            error=error,
            error_class=kind,
            started_at=None if began is None else datetime.fromtimestamp(began, UTC),
            ended_at=None if began is None else datetime.fromtimestamp(began + took, UTC),
            run_ms=round(took * 1000),
        )
        with self._lock:
            self._rows.append(row)
            self.busy_seconds += took
            if kind is not None:
                self.failures[kind] += 1

    def failures_so_far(self) -> dict[str, int]:
        with self._lock:
            return dict(self.failures)

    def take(self) -> Sequence[RunRow]:
        """Returns the rows since the last call."""
        with self._lock:
            rows, self._rows = self._rows, []
        return rows


def stored(text: str) -> str:
    """Returns text that a table can hold: without the halves of characters that no encoding has.

    >>> stored("no \\udcff")
    'no ?'
    """
    return text.encode(errors="replace").decode()


def batch_of(rows: Sequence[RunRow]) -> pa.RecordBatch:
    """Returns rows in the columns of ROWS."""
    values: Sequence[Any] = [*zip(*rows, strict=True)]
    arrays = [pa.array(column, field.type) for column, field in zip(values, ROWS.arrow, strict=True)]
    return pa.record_batch(arrays, schema=ROWS.arrow)


def report_row(report: WorkerReport) -> RunRow:
    return RunRow(json.dumps(asdict(report)), report.task, report.worker)
