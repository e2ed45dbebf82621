"""A real preforking server: gunicorn imports the application once, forks, and each of its workers uses the queue."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jobwire.sync import Queue

PROGRAM = Path(__file__).with_name("wsgi_program.py")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url: str) -> list[str]:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode().split()


def until_it_answers(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert server.poll() is None, "gunicorn ended"
            assert time.monotonic() < deadline, "gunicorn does not listen"
            time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sync", "gthread"])
@pytest.mark.parametrize("protocol", ["bullmq", "pgboss"])
def test_every_worker_of_a_preforking_server_uses_the_queue(
    tmp_path: Path, request: pytest.FixtureRequest, unique: str, protocol: str, kind: str
) -> None:
    server, option = {"bullmq": ("jobwire_valkey", "prefix"), "pgboss": ("jobwire_postgres", "schema")}[protocol]
    url = f"{protocol}+{request.getfixturevalue(server).url}?{option}={unique}"
    port, log = free_port(), tmp_path / "gunicorn.log"
    command = [
        sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--worker-class", kind, "--threads", "2",
        "--bind", f"127.0.0.1:{port}", "--timeout", "60", "--graceful-timeout", "10", "--no-control-socket",
        "wsgi_program:application",
    ]  # fmt: skip
    with log.open("wb") as sink, Queue("letters", url) as queue:
        server = subprocess.Popen(
            command, cwd=PROGRAM.parent, env={**os.environ, "APP_URL": url}, stdout=sink, stderr=sink
        )
        try:
            until_it_answers(server, port)
            answers: list[list[str]] = []
            with ThreadPoolExecutor(4) as callers:
                deadline = time.monotonic() + 60
                while len({pid for pid, _ in answers}) < 2 and time.monotonic() < deadline:
                    answers += callers.map(fetch, [f"http://127.0.0.1:{port}/{n}" for n in range(8)])
        finally:
            server.terminate()
            server.wait(30)
        assert len({pid for pid, _ in answers}) == 2, log.read_text()
        assert len({job for _, job in answers}) == len(answers)
        assert sum(queue.counts().values()) == len(answers) + 1, log.read_text()
    assert server.returncode == 0, log.read_text()
    assert "Traceback" not in log.read_text()
