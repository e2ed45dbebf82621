"""Runs workers as Spark tasks.

The driver checks the handler, its options, the store and the queue first, so that what is wrong is said before Spark
starts. Then one Spark job runs a worker in each of its tasks (task.py). Their rows are written into the lake's workings
and published from there when the job has ended.

A fleet is stopped by a file in the lake (status_files.py): its workers finish their jobs. Spark itself can only kill a
task, which costs what the death of any worker costs: its leases expire, and its jobs are recovered.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from jobwire import urls
from jobwire.checks import Seconds, whole
from jobwire.checks import seconds as checked_seconds
from jobwire.errors import JobwireError
from jobwire.pipeline.history.ingest import sentence
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.run_log import Run
from jobwire.pipeline.privacy.record import record_rules, rules_of
from jobwire.pipeline.privacy.rules import EVERYTHING_KEPT, Privacy
from jobwire.pipeline.spark.progress import Progress, silent
from jobwire.pipeline.spark.session import session_of
from jobwire.pipeline.work.fleet import Fleet
from jobwire.pipeline.work.order import Order, file_of, label_of, pickled
from jobwire.pipeline.work.queue_look import QueueLook
from jobwire.pipeline.work.result import FleetStatus, WorkResult, nothing_to_do
from jobwire.pipeline.work.signals import counted_signals
from jobwire.pipeline.work.status_files import remove_left_over
from jobwire.pipeline.work.watch import Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobwire.pipeline.spark.session import AnySession

_WAIT_FOR_STORE = 60.0
_REPORT_EVERY = 2.0
_FILES_A_SECOND = 50
"""Reports of many workers are written and read less often, since each is a request to the lake."""
_LEASE = _RECOVER_EVERY = 30.0
_LOOKS_FOR_STALLED = 3
"""Some protocols recover a job when they find it without a lease for the second time."""


def _unwatched(status: FleetStatus) -> None:
    """Shows nothing."""


def work(
    spark: AnySession,
    lake: Lake,
    queue: str,
    handler: Any,
    url: str | None = None,
    *,
    tasks: int,
    seconds: Seconds | None = None,
    files: Sequence[str] = (),
    signals: bool = True,
    privacy: Privacy = EVERYTHING_KEPT,
    watch: Watch = _unwatched,
    progress: Progress = silent,
    **options: Any,
) -> WorkResult:
    """Runs a worker in each of `tasks` Spark tasks: until no job is ready, or for so many `seconds`.

    `handler` is `module:object` or `./file.py:object` as for `jobwire worker`, a function, or a dict of queues to
    handlers. An app is given as text. The executors must be able to import it: it is installed there, or it is among
    `files` (.py, .zip), which Spark sends to them. A file that `handler` names is sent by itself. The other options are
    those of a Worker.

    In the main thread, SIGINT and SIGTERM stop the fleet: its workers finish their jobs and report. A second signal has
    them release their jobs at once. A third one has Spark kill all that the session runs, and raises KeyboardInterrupt.
    `signals=False` leaves signals alone.

    Errors, names and ids are kept without the values that rules of privacy cover: those in `privacy`, and those that
    the lake was written under.
    """
    tasks = whole("tasks", tasks, minimum=1)
    limit = None if seconds is None else checked_seconds("seconds", seconds, minimum=0.1)
    with ExitStack() as stack:
        look = QueueLook.opened(stack, handler, queue, url, options)
        with lake.run("work", store=look.store, queue=queue, tasks=tasks, handler=label_of(handler)) as run:
            if privacy.rules:
                record_rules(lake, privacy)
            if limit is None and look.is_empty():
                return _recorded(run, nothing_to_do(run.id, look.store, queue, tasks))
            session = session_of(spark)
            _send_files(session, handler, files)
            order = Order(
                run=run.id,
                queue=look.queue,
                tasks=tasks,
                pickled=pickled(handler, {"wait_for_store": _WAIT_FOR_STORE, **options}),
                url=look.url,
                default_url=look.url or os.environ.get("JOBWIRE_URL", urls.DEFAULT_URL),
                folder=os.getcwd(),
                lake=lake.files.root,
                until=None if limit is None else time.time() + limit,
                seconds=limit,
                report_every=max(_REPORT_EVERY, tasks / _FILES_A_SECOND),
                stay=_stay(options),
                rules=rules_of(lake, queue, privacy),
            )
            remove_left_over(lake.files)
            fleet = Fleet(session, lake, look, order)
            try:
                with counted_signals(wanted=signals) as seen:
                    stopped = fleet.run_job(seen, watch)
            except BaseException:
                run.note(**fleet.abandoned())
                raise
            progress("publishing", 0, None)
            return _recorded(run, fleet.publish(stopped=stopped))


def _stay(options: Mapping[str, Any]) -> float:
    lease, every = options.get("lease", _LEASE), options.get("recover_every", _RECOVER_EVERY)
    return checked_seconds("lease", lease) + _LOOKS_FOR_STALLED * checked_seconds("recover_every", every)


def _send_files(spark: SparkSession, handler: Any, files: Sequence[str]) -> None:
    own = file_of(handler)
    named: list[str] = [] if own is None else [str(own)]
    for file in dict.fromkeys([*named, *files]):
        if not os.path.isfile(file):
            raise JobwireError(f"there is no file {file!r} to send to the executors")
        try:
            spark.addArtifacts(os.path.abspath(file), pyfile=True)
        except Exception as error:
            raise JobwireError(f"{file} can't be sent to the executors: {sentence(error)}") from error


def _recorded(run: Run, result: WorkResult) -> WorkResult:
    run.rows_in = sum(one.claimed for one in result.workers)
    run.rows_out = result.completed + result.failed
    known = result.as_dict()
    del known["workers"], known["run"]
    run.note(**known, workers=len(result.workers))
    run.fault = "; ".join(result.errors) or None
    return result
