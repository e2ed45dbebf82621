"""A Spark task that is a worker: the function that `mapInArrow` runs on the executors.

Nothing here raises because of a handler, a module or a store: that is in the worker's report. An error would make Spark
try the task again, and after a few of them kill all workers of the fleet. Spark tries a task again if its process or
its machine died. Its worker has another id then, and is one more worker of the queue.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa

from jobwire.pipeline.work.order import Order, worker_in_task
from jobwire.pipeline.work.result import FAILED, WorkerReport, counts_of
from jobwire.pipeline.work.run_rows import RunRows, batch_of, report_row, stored
from jobwire.pipeline.work.status_files import StatusFiles
from jobwire.pipeline.work.worker_thread import WorkerThread
from jobwire.redact import redact
from jobwire.worker import Worker


class Task:
    """The function that all tasks of a fleet run."""

    def __init__(self, order: Order) -> None:
        self._order = order

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _worked(self._order, number)


def _worked(order: Order, number: int) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext  # noqa: PLC0415 an extra

    context = TaskContext.get()
    rows = RunRows(number, order.rules)
    report = WorkerReport(
        task=number,
        task_attempt=0 if context is None else context.attemptNumber(),
        worker="",
        host=socket.gethostname(),
        started_at=_now(),
    )
    files = StatusFiles(order.lake, order.run)
    try:
        with worker_in_task(order, rows) as worker:
            rows.worker = worker.id
            report = replace(report, worker=worker.id)
            files.report(report)
            thread = WorkerThread(worker, seconds=_seconds_left(order), stay=order.stay if report.task_attempt else 0.0)
            try:
                for batch in _until_ended(thread, rows, order.report_every):
                    if batch is not None:
                        yield batch
                    files.report(_so_far(report, worker, rows))
                    thread.stop_as_often_as(files.stops())
            finally:
                if not thread.wait(0):  # Spark has closed this task
                    thread.stop_as_often_as(2)
            report = _so_far(report, worker, rows, outcome=thread.outcome, ended_at=_now())
            error = thread.error
    except (Exception, SystemExit) as refused:  # of the user's module, or a Worker that can't be made of it
        error = refused
        report = replace(report, worker=report.worker or f"{report.host}-{os.getpid()}-{number}", ended_at=_now())
    if error is not None:
        report = replace(report, outcome=FAILED, error=_sentence(error))
    files.report(report)
    yield batch_of([*rows.take(), report_row(report)])


def _until_ended(thread: WorkerThread, rows: RunRows, every: float) -> Iterator[pa.RecordBatch | None]:
    """Yields the new rows every so often until the worker has ended, or None if there are none."""
    parent = os.getppid()
    thread.start()
    while not thread.wait(every):
        found = rows.take()
        yield batch_of(found) if found else None
        # A Python process whose executor was killed gets another parent, and its rows are not wanted any more.
        if os.getppid() != parent:
            thread.stop_as_often_as(1)


def _so_far(report: WorkerReport, worker: Worker, rows: RunRows, **more: str | None) -> WorkerReport:
    counts = {**counts_of(worker.stats), "busy_ms": round(rows.busy_seconds * 1000)}
    return replace(report, **counts, failures=rows.failures_so_far(), **more)  # type: ignore[arg-type]


def _seconds_left(order: Order) -> float | None:
    if order.until is None or order.seconds is None:
        return None
    return min(order.until - time.time(), order.seconds)


def _sentence(error: BaseException) -> str:
    text = redact(str(error)).strip() or type(error).__name__
    return stored(text.splitlines()[0][:500])


def _now() -> str:
    return datetime.now(UTC).isoformat()
