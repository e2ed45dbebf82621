"""A Java that starts Spark in half the time: it maps Spark's classes from a file instead of reading them one by one.

The suite starts some forty Java processes that live for seconds, each of which would spend five seconds of a core on
loading the same classes. The file is made once per run of the suite, in the background: what starts earlier starts as
it always did. Java ignores a file that does not fit it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jobwire.pipeline.spark.java import java_home

_JAVA = """#!/bin/sh
# The words are for the process that runs Spark, and not for the one that finds out how to start it.
case "$*" in
  *org.apache.spark.deploy.SparkSubmit*)
    if [ -n "$JOBWIRE_TEST_DUMP" ]; then exec "{java}" -Xlog:disable -XX:ArchiveClassesAtExit="$JOBWIRE_TEST_DUMP" "$@"
    elif [ -f "{archive}" ]; then exec "{java}" -Xlog:disable -XX:SharedArchiveFile="{archive}" "$@"
    fi ;;
esac
exec "{java}" "$@"
"""
_USE_SPARK = """
import sys
from pyspark.sql import functions as F
from jobwire.pipeline.spark.session import SMALL, spark_session
spark = spark_session("local[1]", {**SMALL, "spark.driver.memory": "700m", "spark.sql.shuffle.partitions": "1"})
rows = spark.range(100).selectExpr("id", "id % 7 as k", "to_json(struct(id)) as j", "timestamp_seconds(id) as t")
rows.mapInArrow(lambda batches: batches, rows.schema).write.mode("overwrite").parquet(sys.argv[1])
read = spark.read.parquet(sys.argv[1]).withColumn("n", F.get_json_object("j", "$.id").cast("long"))
read.groupBy("k").agg(F.sum("n"), F.max("t"), F.count_distinct("id")).orderBy("k").toPandas()
read.join(read.withColumnRenamed("id", "other"), "k").limit(3).collect()
spark.stop()
"""


@contextmanager
def quick_java(folder: Path) -> Iterator[None]:
    """Has Spark start with the file of this folder, which several processes may share: the first one makes it."""
    home = folder / f"java-{os.getpid()}"
    java, archive, dump = home / "bin" / "java", folder / "spark.jsa", folder / "spark.jsa.new"
    java.parent.mkdir(parents=True)
    java.write_text(_JAVA.format(java=Path(java_home()) / "bin" / "java", archive=archive))
    java.chmod(0o755)
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(home)
    maker = _maker(folder, dump, archive)
    try:
        yield
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before
        if maker is not None:
            with suppress(ProcessLookupError):
                os.killpg(maker.pid, signal.SIGKILL)
            maker.wait()


def _maker(folder: Path, dump: Path, archive: Path) -> subprocess.Popen[bytes] | None:
    try:
        (folder / "spark.jsa.maker").mkdir()
    except FileExistsError:
        return None
    # Java writes the file when it ends, some time after Python has; the pipe is closed when both have.
    steps = f'"$0" -c "$1" "{folder / "rows"}" 2>&1 | cat >"{folder / "spark.jsa.log"}"; mv "{dump}" "{archive}"'
    return subprocess.Popen(
        ["sh", "-c", steps, sys.executable, _USE_SPARK],
        env={**os.environ, "JOBWIRE_TEST_DUMP": str(dump)},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
