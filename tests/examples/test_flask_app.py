"""The example of Flask, under a gunicorn that imports it once and forks."""

from __future__ import annotations

import json
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from .conftest import EXAMPLES, free_port, running, until

pytestmark = pytest.mark.slow


def test_the_jobs_of_forked_servers_are_run(tmp_path: Path, jobwire_url: str) -> None:
    port = free_port()
    server_log, worker_log = tmp_path / "gunicorn.log", tmp_path / "worker.log"

    def answers() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    def ask(path: str, data: Any = None) -> dict[str, Any]:
        body = None if data is None else json.dumps(data).encode()
        question = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, {"content-type": "application/json"})
        with urllib.request.urlopen(question, timeout=30) as answer:
            return json.load(answer)

    gunicorn = [
        sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--bind", f"127.0.0.1:{port}",
        "--no-control-socket", "flask_app:web",
    ]  # fmt: skip
    with (
        running(server_log, *gunicorn, JOBWIRE_URL=jobwire_url),
        running(worker_log, sys.executable, EXAMPLES / "flask_app.py", JOBWIRE_URL=jobwire_url),
    ):
        until(answers, "gunicorn does not listen", server_log)
        jobs = [ask("/reports", {"title": f"report-{n}", "pages": 2})["job"] for n in range(12)]
        for n, job in enumerate(jobs):
            done = until(
                lambda job=job: (now := ask(f"/reports/{job}"))["state"] == "completed" and now, job, worker_log
            )
            assert done == {"state": "completed", "progress": 100, "file": f"report-{n}.pdf"}
    assert "Traceback" not in server_log.read_text() + worker_log.read_text()
