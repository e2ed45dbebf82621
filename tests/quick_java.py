"""A Java that starts Spark in half the time: it maps Spark's classes from a file instead of reading them one by one.

The suite starts some twenty Java processes that live for seconds, each of which would spend five seconds of a core on
loading the same classes. The file is made in the background: what starts earlier starts as it always did. It is kept
for later runs with the same Java and the same Spark. Java ignores a file that does not fit it.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from jobwire.pipeline.spark.java import java_home

_JAVA = """#!/bin/sh
# The file is for the processes of Spark, and not for the one that finds out how to start them.
# A killed Spark leaves its temporary files: they belong into the folder of the run, which is deleted.
# Java of this level has little room for compiled code unless it is told to: Spark fills it, and Java compiles again.
brief="-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:MetaspaceSize=200m -XX:NewRatio=1"
brief="$brief -Djava.io.tmpdir={temporary}"
case "$*" in
  *org.apache.spark.launcher.Main*) exec "{java}" $brief "$@" ;;
  *org.apache.spark.*)
    if [ -n "$JOBWIRE_TEST_DUMP" ]
    then exec "{java}" $brief -Xlog:disable -XX:ArchiveClassesAtExit="$JOBWIRE_TEST_DUMP" "$@"
    elif [ -f "{archive}" ]; then exec "{java}" $brief -Xlog:disable -XX:SharedArchiveFile="{archive}" "$@"
    else exec "{java}" $brief "$@"
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
stream = spark.readStream.schema(read.schema).parquet(sys.argv[1]).writeStream.format("parquet").partitionBy("k")
stream = stream.option("checkpointLocation", sys.argv[1] + "-offsets").trigger(availableNow=True)
stream.start(sys.argv[1] + "-copy").awaitTermination()
spark.stop()
"""


@contextmanager
def quick_java(folder: Path, kept: Path) -> Iterator[None]:
    """Has Spark start with a file of the folder `kept`, which outlives the run. Several processes may share `folder`,
    which is the run's own: the first one of them makes the file if there is none."""
    real, home = Path(java_home()) / "bin" / "java", folder / f"java-{os.getpid()}"
    java, archive = home / "bin" / "java", kept / f"spark-{_fitting(real)}.jsa"
    java.parent.mkdir(parents=True)
    (home / "tmp").mkdir()
    java.write_text(_JAVA.format(java=real, archive=archive, temporary=home / "tmp"))
    java.chmod(0o755)
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(home)
    maker = None if archive.exists() else _maker(folder, archive)
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
            _dump(archive).unlink(missing_ok=True)


def _fitting(java: Path) -> str:
    """Returns a digest of what the file has to fit: the Java, and the jars of Spark."""
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    jars = sorted((Path(pyspark.__file__).parent / "jars").iterdir())
    stamps = [f"{jar} {jar.stat().st_mtime_ns}" for jar in jars]
    return hashlib.sha256("\n".join([version, *stamps]).encode()).hexdigest()[:16]


def _dump(archive: Path) -> Path:
    """Returns where this process has the file written before it is whole."""
    return archive.with_suffix(f".{os.getpid()}")


def _maker(folder: Path, archive: Path) -> subprocess.Popen[bytes] | None:
    try:
        (folder / "maker").mkdir()
    except FileExistsError:
        return None
    dump = _dump(archive)
    for old in archive.parent.glob("spark-*"):
        old.unlink(missing_ok=True)
    # Java writes the file when it ends, some time after Python has; the pipe is closed when both have.
    steps = f'"$0" -c "$1" "{folder / "rows"}" 2>&1 | cat >"{folder / "maker.log"}"; mv "{dump}" "{archive}"'
    return subprocess.Popen(
        ["sh", "-c", steps, sys.executable, _USE_SPARK],
        env={**os.environ, "JOBWIRE_TEST_DUMP": str(dump)},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
