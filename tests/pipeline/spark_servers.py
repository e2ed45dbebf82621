"""Spark's own servers, from the jars of the pyspark package: a standalone cluster, and a Spark Connect server."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from jobwire.pipeline.spark.java import java_home
from jobwire.pipeline.spark.session import SMALL
from jobwire.pipeline.spark.worker_python import worker_python

SPARK_HOME = Path(pyspark.__file__).parent
BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""For processes of less than a minute: Java then does not compile its classes to the last."""
STANDALONE = {
    **SMALL,
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": BRIEF_JAVA,
    # Nothing begins before both executors are there.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "240s",
}
"""Settings of a program on the standalone cluster."""
PATIENCE = 240.0
"""Seconds for a Java process to come up on a machine that is busy with other tests."""


@dataclass(frozen=True)
class Started:
    """A process in a session of its own, whatever it starts being in it too; it writes into `log`."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def session(self) -> int:
        return self.process.pid

    def told(self, pattern: str, within: float = PATIENCE) -> str:
        """The first group of the pattern, once the process has written it."""

        def look() -> str | None:
            text = self.log.read_text(errors="replace")
            found = re.search(pattern, text)
            ended = self.process.poll()
            assert found or ended is None, f"ended with {ended} before it said {pattern!r}:\n{text[-3000:]}"
            return found and found[1]

        return awaited(look, f"{pattern!r} in {self.log}", within)


@dataclass(frozen=True)
class Cluster:
    """A standalone master with its workers."""

    url: str
    workers: tuple[Started, ...]


@contextmanager
def started(line: list[str], log: Path, **more: str) -> Iterator[Started]:
    """A program that runs until the block ends, with all that it has started by then."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env=environment(**more)
        )
    try:
        yield Started(process, log)
    finally:
        endsession(process)


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers of one core each, on free ports of the loopback address."""
    deploy = "org.apache.spark.deploy"
    spark_class = str(SPARK_HOME / "bin" / "spark-class")
    listen = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    home = {"JAVA_HOME": java_home(), "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": BRIEF_JAVA}
    with contextlib.ExitStack() as stack:
        line = [spark_class, f"{deploy}.master.Master", *listen]
        # Its second way to submit, by REST, would be the one port that is not free to choose.
        no_rest = {"SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false"}
        master = stack.enter_context(started(line, folder / "master.log", **home, **no_rest))
        url = master.told(r"Starting Spark master at (spark://\S+)")
        web = master.told(r"MasterWebUI to \S+ and started at (http://\S+)")
        found: list[Started] = []
        for number in range(workers):
            work = folder / f"worker-{number}"
            line = [spark_class, f"{deploy}.worker.Worker", *listen, "-c", "1", "-m", "600M", "-d", str(work), url]
            found.append(stack.enter_context(started(line, folder / f"worker-{number}.log", **home)))
        awaited(lambda: _alive(web) == workers, f"{workers} workers at {url}")
        yield Cluster(url, tuple(found))


@contextmanager
def connect_server(folder: Path) -> Iterator[tuple[str, Started]]:
    """A Spark of two cores behind the Connect protocol, and the URL for its clients."""
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": BRIEF_JAVA,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    line = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]"]
    line += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    line += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    with started(line, folder / "connect.log", JAVA_HOME=java_home()) as server:
        port = server.told(r"Spark Connect server started at: \S+:(\d+)")
        yield f"sc://127.0.0.1:{port}", server


def environment(**more: str) -> dict[str, str]:
    """For a Spark of this machine alone, whose Python processes have the packages of this one."""
    python = worker_python()
    own = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**os.environ, "SPARK_HOME": str(SPARK_HOME), **own, **more}


def endsession(leader: subprocess.Popen[bytes]) -> None:
    """Have the process tidy up and end, then kill all that are left of its session, in whatever group they are."""
    leader.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        leader.wait(30)
    until = time.monotonic() + 60
    while alive := session(leader.pid):
        assert time.monotonic() < until, f"processes that can't be killed: {alive}"
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)
    leader.wait()


def awaited(look: Callable[[], Any], what: str, within: float = PATIENCE) -> Any:
    """The first true value of `look`."""
    until = time.monotonic() + within
    while not (seen := look()):
        assert time.monotonic() < until, f"not within {within:g} s: {what}"
        time.sleep(0.1)
    return seen


def _alive(web: str) -> int:
    with urllib.request.urlopen(f"{web.rstrip('/')}/json/", timeout=10) as answer:
        return sum(worker["state"] == "ALIVE" for worker in json.load(answer)["workers"])


def session(leader: int) -> set[int]:
    """The processes of a session that have not ended."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader and state != "Z":
                    found.add(int(entry.name))
    return found
