"""Checks everything that the pipeline needs, one thing after the other, each with what to do if it is missing."""

from __future__ import annotations

import importlib.metadata
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobwire import urls
from jobwire.campaigns.addresses import is_database
from jobwire.counted import counted
from jobwire.errors import JobwireError, MissingExtra
from jobwire.pipeline.lake.files import LakeFiles, through_spark
from jobwire.pipeline.spark.java import java_home, java_version
from jobwire.pipeline.spark.session import spark_session
from jobwire.pipeline.stores.address import reached, store_name
from jobwire.pipeline.stores.boundary import list_queues
from jobwire.pipeline.stores.campaigns.address import database_name
from jobwire.redact import redact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Finding:
    """The outcome of a check, in words."""

    check: str
    ok: bool
    detail: str


def diagnose(
    stores: Sequence[str],
    lake: str,
    *,
    session: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> Iterator[Finding]:
    """Checks Java, Spark, every store and the lake, in this order. Continues after a failure. With `session`, Spark is
    started, and it must find the format."""
    if master is None or not master.startswith("sc://"):
        yield _tried("Java", lambda: f"version {java_version(java_home())}")
    yield _tried("Spark", _spark)
    started: list[SparkSession] = []

    def start() -> str:
        started.append(spark_session(master, conf))
        return f"{started[0].version}, master {master or 'local[*]'}"

    if session:
        yield _tried("session", start)
    if started:
        yield _tried("format jobwire", lambda: _format(started[0]))
    for url in stores:
        if is_database(url):
            yield _tried(database_name(url), lambda url=url: _campaigns(url))
        else:
            yield _tried(store_name(url), lambda url=url: _store(url))
    yield _tried("lake", lambda: _lake(lake, session=session))


def _tried(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, check())
    except Exception as error:
        text = redact(str(error)).strip() or type(error).__name__
        return Finding(name, False, text.splitlines()[0])


def _spark() -> str:
    try:
        return f"pyspark {importlib.metadata.version('pyspark')}"
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtra("the pipeline", "spark") from None


def _format(spark: SparkSession) -> str:
    """Checks that Spark's own processes find the data source: it is not enough that this one does."""
    frame = spark.read.format("jobwire").option("url", urls.DEFAULT_URL).option("queue", "none").load()
    return f"found, {len(frame.columns)} columns"


def _store(url: str) -> str:
    with reached(url) as where:
        queues = list_queues(urls.parse(where))
    shown = ", ".join(queues[:5]) + (", …" if len(queues) > 5 else "")
    return f"{counted(len(queues), 'queue')}: {shown}" if queues else "reached; it has no queues yet"


def _campaigns(url: str) -> str:
    from jobwire.pipeline.stores.campaigns.tables import describe  # noqa: PLC0415 needs the driver

    return ", ".join(f"{rows:,} {table}" for table, rows in describe(url, database_name(url)).items())


def _lake(root: str, *, session: bool) -> str:
    """Writes, reads and removes a small file, as a run does."""
    if not session and through_spark(root):
        return f"{root}: reached through Spark alone; --session checks it"
    files = LakeFiles(root)
    folder = f"workings/doctor-{uuid.uuid4().hex}"
    try:
        files.write(f"{folder}/probe.json", {"written": True})
        if files.read(f"{folder}/probe.json") is None:
            raise JobwireError(f"{root}: a file that was written can't be read")
    finally:
        files.remove(folder)
    if not files.local:
        return f"{root}: can be written"
    free = os.statvfs(files.for_arrow(""))
    gigabytes = free.f_bavail * free.f_frsize / 1e9
    if gigabytes < 1:
        raise JobwireError(f"{root}: only {gigabytes:.1f} GB free")
    return f"{root}: can be written, {gigabytes:,.0f} GB free"
