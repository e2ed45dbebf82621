"""The Spark session of the pipeline's commands: local, on a cluster, or behind Spark Connect."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jobwire.errors import JobwireError, MissingExtra
from jobwire.pipeline.spark.java import java_home
from jobwire.pipeline.spark.worker_python import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    AnySession = SparkSession | Callable[[], SparkSession]
    """A session, or a function that returns one. The function is called if Spark is needed, and may start it."""

_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
# Without a size to begin with, Java collects garbage five times while it loads Spark's classes.
_JAVA = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')} -XX:MetaspaceSize=200m"
_HERE = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
    "spark.sql.streaming.metricsEnabled": "false",
    # By default PySpark sends the line of the caller to Java before every function of a column: 26,000 calls in a build
    # instead of 13,000, and 4.0 s for a few rows instead of 3.4. Errors of Spark do not name that line then.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # A table of many days is many folders: a job with a task for each takes a second where a loop takes milliseconds.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
"""For a Spark that runs in this process and serves one command."""

_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
# Java that does not compile to the last has room for 48 MB of compiled code. Spark fills it: the third build of a lake
# in one process took 13 s of a core instead of 6, as Java discarded code and compiled it again.
_ROOM = "-XX:ReservedCodeCacheSize=240m"
_FOR_LITTLE = {**_INTERPRETED, "spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "2"}
_TASKS = ("spark.sql.shuffle.partitions", "spark.sql.files.minPartitionNum", "spark.sql.leafNodeDefaultParallelism")
_FEW = 20_000
_BRIEF = {"spark.driver.extraJavaOptions": f"{_JAVA} -XX:TieredStopAtLevel=1 {_ROOM} -XX:+UseSerialGC"}
SMALL = {**_FOR_LITTLE, **_BRIEF}
"""For a few thousand rows: neither Spark compiles and replans its queries nor Java compiles its classes to the last,
which would take longer than running them."""


@contextmanager
def for_little(spark: SparkSession, rows: int) -> Generator[None]:
    """Has Spark neither compile nor replan queries inside the block: for small inputs, both take longer than running.
    An adaptive query is a job for each of its stages. For very few rows, each stage is one task."""
    tasks = "1" if rows < _FEW else "2"
    with _configured(spark, {**_FOR_LITTLE, **dict.fromkeys(_TASKS, tasks)}):
        yield


@contextmanager
def for_much(spark: SparkSession) -> Generator[None]:
    """Has Spark compile the queries inside the block, also inside a block of `for_little`: for a query over rows of
    which it was not known that they are many."""
    with _configured(spark, _COMPILED):
        yield


@contextmanager
def _configured(spark: SparkSession, wanted: Mapping[str, str]) -> Generator[None]:
    before = {key: spark.conf.get(key, None) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def session_of(given: AnySession) -> SparkSession:
    """Returns the session that was given, or the one that the given function returns."""
    return given() if callable(given) else given


def spark_session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    brief: bool = False,
    local: str = "local[*]",
) -> SparkSession:
    """Returns a session for the master: `local[*]`, `spark://…`, `k8s://…`, `yarn`, or `sc://host:port`. Without one it
    is `local`. With `brief`, a local one is made for little work: Java does not compile classes to the last.

    Under spark-submit, and wherever a session exists already, that one is used as it is.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 an extra
    except ImportError:
        raise MissingExtra("pipeline:", "spark") from None
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    master = master or os.environ.get("SPARK_REMOTE") or os.environ.get("MASTER")
    wanted = {**_ALWAYS, **(conf or {})}
    if master is not None and master.startswith("sc://"):
        builder = SparkSession.builder.remote(master)
    else:
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        if not submitted:
            os.environ["JAVA_HOME"] = java_home()
            builder = SparkSession.builder.appName("jobwire").master(master or local)
        else:
            builder = SparkSession.builder.appName("jobwire")
        if not submitted and (master is None or master.startswith("local")):
            # Spark's workers run the first `python3` on the path, which may be another one without this one's packages.
            # Those that plan reads and writes of a data source run the driver's Python.
            if "PYSPARK_PYTHON" not in os.environ or "PYSPARK_DRIVER_PYTHON" not in os.environ:
                python = worker_python()
                os.environ.setdefault("PYSPARK_PYTHON", python)
                os.environ.setdefault("PYSPARK_DRIVER_PYTHON", python)
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            wanted = {**_HERE, **(_BRIEF if brief else {}), **wanted}
    for key, value in wanted.items():
        builder = builder.config(key, value)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        return builder.getOrCreate()
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise JobwireError(f"Spark did not start on {master or local}: {first}") from error
