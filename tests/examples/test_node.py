"""The example of Node.js: jobs go from Node to Python and from Python to Node, and their results come back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interop.node_process import NODE
from interop.peer import SCRIPTS
from jobwire.embedded import Server

from .conftest import EXAMPLES, running

pytestmark = pytest.mark.slow


def test_jobs_go_both_ways(tmp_path: Path, jobwire_valkey: Server, unique: str) -> None:
    here = tmp_path / "node"
    shutil.copytree(EXAMPLES / "node", here)
    (here / "node_modules").symlink_to((SCRIPTS / "node_modules").resolve())
    environment = {
        "JOBWIRE_URL": f"bullmq+{jobwire_valkey.url}?prefix={unique}",
        "REDIS_URL": jobwire_valkey.url,
        "PREFIX": unique,
    }
    node_log, python_log = tmp_path / "worker.mts.log", tmp_path / "tasks.py.log"
    with (
        running(node_log, NODE, "worker.mts", cwd=here, **environment),
        running(python_log, sys.executable, "tasks.py", cwd=here, **environment),
    ):
        asked = subprocess.run(
            [NODE, "producer.mts"],
            cwd=here,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
    logs = node_log.read_text() + python_log.read_text()
    assert asked.returncode == 0, asked.stderr + logs
    invoice, refusal = asked.stdout.splitlines()
    assert json.loads(invoice) == {
        "customer": "Acme",
        "day": "2026-11-16",
        "total": "219.85",
        "logo": {"svg": '<svg width="100"><text>A</text></svg>', "width": 100},
    }
    assert refusal.startswith("task make_invoice: data.lines[0].price: "), logs
