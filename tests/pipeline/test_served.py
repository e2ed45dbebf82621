"""A warm Spark: commands use it when it is there, and go on without it when it is not."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from jobwire.pipeline.spark.served import FILE, NotServed, Served, found, is_wanted, release
from jobwire.sync import Queue
from pipeline.spark_servers import awaited, started

NO_PROCESS = 2**22 + 1
"""Beyond the last number that Linux gives."""
PROGRAM = """
print(type(spark).__module__, [row["count"] for row in spark.sql("select count(*) as count from runs").collect()])
"""


def here(**changes: Any) -> Served:
    served = Served(1, "secret", os.getpid(), socket.gethostname(), release(), sys.executable)
    return replace(served, **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"process": NO_PROCESS}, "that has ended"),
        ({"host": "another"}, "that has ended"),
        ({"release": "jobwire 0"}, "of another release or another Python"),
        ({"python": "/usr/bin/another"}, "of another release or another Python"),
        ({}, "that does not answer"),  # nothing listens on port 1
    ],
    ids=["ended", "host", "release", "python", "port"],
)
def test_a_server_that_can_not_be_used_is_said_to_be_so(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    file = tmp_path / "serve.json"
    file.write_text(json.dumps(asdict(here(**changes))))

    with pytest.raises(NotServed, match=words):
        found(file)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"port": 1}'])
def test_a_file_that_is_not_a_servers_is_said_to_be_so(tmp_path: Path, content: str) -> None:
    file = tmp_path / "serve.json"
    file.write_text(content)

    with pytest.raises(NotServed, match="can't be read"):
        found(file)


def test_no_file_is_no_server(tmp_path: Path) -> None:
    assert found(tmp_path / "serve.json") is None


def test_a_command_that_names_a_spark_of_its_own_does_not_use_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_REMOTE", "MASTER", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)

    assert is_wanted(None, {})
    assert not is_wanted("local[2]", {})
    assert not is_wanted(None, {"spark.ui.enabled": "true"})
    monkeypatch.setenv("MASTER", "yarn")
    assert not is_wanted(None, {})


@pytest.mark.slow
@pytest.mark.xdist_group("spark-apart")
@pytest.mark.usefixtures("quick_spark")
@pytest.mark.timeout(900)
def test_commands_in_the_folder_of_a_server_use_it(tmp_path: Path, jobwire_url: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    program = [sys.executable, "-m", "jobwire", "pipeline"]

    def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program, *arguments, "--lake", "lake"],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    Path("customers.csv").write_text("to,plan\na@example.com,free\nb@example.com,paid\n")
    with started([*program, "serve", "--conf", "spark.driver.memory=1g"], tmp_path / "serve.log") as server:
        awaited(lambda: FILE.exists() or server.process.poll() is not None, "the server's file")
        assert server.process.poll() is None, server.log.read_text()
        assert FILE.stat().st_mode & 0o777 == 0o600
        served = found()
        second = subprocess.run([*program, "serve"], capture_output=True, text=True, check=False, timeout=600)
        loaded = run("load", "customers.csv", "--to", jobwire_url, "--queue", "welcome")
        missing = run("load", "nosuch.csv", "--to", jobwire_url, "--queue", "welcome")
        shell = run("shell", given=PROGRAM)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(120) == 0

    assert served is not None
    assert (second.returncode, f"(process {served.process})" in second.stderr) == (1, True), second.stderr
    assert "2 jobs added, 0 there before" in loaded.stdout, loaded.stderr
    assert missing.returncode == 1
    assert "jobwire: nosuch.csv can't be read as csv: [PATH_NOT_FOUND]" in missing.stderr
    assert shell.stdout == "pyspark.sql.connect.session [1]\n", shell.stderr
    for said in (loaded, shell):
        assert "using the Spark of `jobwire pipeline serve`" in said.stderr
        assert "starting Spark" not in said.stderr
    with Queue("welcome", jobwire_url) as queue:
        assert sum(queue.counts().values()) == 2
    assert not FILE.exists()
