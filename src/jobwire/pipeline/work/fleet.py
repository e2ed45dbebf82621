"""One Spark job whose tasks are workers: starts it, watches it, stops it and publishes what it returned."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from jobwire.errors import JobwireError
from jobwire.pipeline.history.ingest import sentence
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.work.order import Order
from jobwire.pipeline.work.outcomes import all_reports, publish, reports_in
from jobwire.pipeline.work.queue_look import QueueLook
from jobwire.pipeline.work.result import WorkerReport, WorkResult
from jobwire.pipeline.work.run_rows import ROWS
from jobwire.pipeline.work.signals import Signals
from jobwire.pipeline.work.status_files import StatusFiles
from jobwire.pipeline.work.task import Task
from jobwire.pipeline.work.watch import Watch, Watcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY = 1.0
_KILL = 3
"""The number of the signal that has Spark kill the tasks."""


class Fleet:
    """The workers of one order."""

    def __init__(self, spark: SparkSession, lake: Lake, look: QueueLook, order: Order) -> None:
        self._spark, self._lake, self._look, self._order = spark, lake, look, order
        self._files = StatusFiles(order.lake, order.run)
        self._rows = f"{self._files.folder.removeprefix('workings/')}/rows"
        self._tag = f"jobwire-work-{order.run}"
        self._watcher = Watcher(self._files, order.tasks, look.left)

    def run_job(self, signals: Signals, watch: Watch) -> bool:
        """Runs the tasks. Returns whether they were asked to stop."""
        stops, next_look = 0, 0.0
        with ThreadPoolExecutor(1, "jobwire-work") as thread:
            job = thread.submit(self._job)
            try:
                while not wait([job], timeout=_EVERY).done:
                    if signals.count > stops:
                        stops = signals.count
                        self._files.ask_to_stop(stops)
                        if stops >= _KILL:
                            raise KeyboardInterrupt
                    if self._watcher.seconds >= next_look:
                        next_look = self._watcher.seconds + self._order.report_every / 2
                        watch(self._watcher.look(stopping=stops > 0))
            except BaseException:
                self._kill()
                raise
        self._check(job)
        return stops > 0

    def _kill(self) -> None:
        """Has Spark kill the tasks. A session that is not behind Spark Connect finds tags of its own thread only (Spark
        4.3), so that all of its jobs are interrupted."""
        if not self._spark.interruptTag(self._tag):
            self._spark.interruptAll()

    def _job(self) -> None:
        self._spark.addTag(self._tag)
        try:
            numbers = self._spark.range(0, self._order.tasks, 1, self._order.tasks)
            self._lake.set_aside(self._rows, numbers.mapInArrow(Task(self._order), ROWS.ddl))
        finally:
            self._spark.removeTag(self._tag)

    def _check(self, job: Future[None]) -> None:
        error = job.exception()
        if isinstance(error, Exception):
            raise JobwireError(
                f"Spark gave up the tasks of run {self._order.run}: {sentence(error)} "
                "(jobs that ran are recovered when their leases expire)"
            ) from error
        job.result()

    def abandoned(self) -> dict[str, int]:
        """Returns the counts of a job that has failed, as its workers were last seen. Their files stay, since
        workers that are being killed may still write some."""
        reports: Sequence[WorkerReport] = ()
        with contextlib.suppress(JobwireError, OSError):
            reports = self._files.reports()
        counts = {name: sum(getattr(one, name) for one in reports) for name in ("completed", "failed", "retried")}
        return {**counts, "workers": len(reports)}

    def publish(self, *, stopped: bool) -> WorkResult:
        """Publishes what the tasks have returned, and returns it."""
        run, store, queue = self._order.run, self._look.store, self._look.queue
        seconds = self._watcher.seconds
        rows = self._lake.aside(self._spark, self._rows)
        reports = all_reports(self._files.reports(), reports_in(rows))
        publish(self._lake, reports, rows, run=run, store=store, queue=queue)
        self._files.remove()
        return WorkResult(
            run=run,
            store=store,
            queue=queue,
            tasks=self._order.tasks,
            seconds=seconds,
            stopped=stopped,
            left=self._look.left(),
            workers=tuple(reports),
        )
