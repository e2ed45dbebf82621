"""Runs one contender on one scenario, on an empty server, and notes what both sides spent."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from bench.peers.contenders import ROOT, Contender
from bench.peers.scenarios import Scenario
from redis import Redis

from jobwire.embedded import Server

WITHIN = 180.0


class Race:
    """One server for all contenders."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.client = Redis.from_url(server.url, decode_responses=True)

    def run(self, contender: Contender, scenario: Scenario) -> dict[str, Any] | None:
        """Returns what was measured, or None if the contender's worker can't run so many jobs at once."""
        if scenario.concurrency > contender.widest:
            return None
        jobs = min(scenario.jobs, contender.most_alone) if scenario.concurrency == 1 else scenario.jobs
        self.client.flushall()
        if scenario.operation == "work":
            self._call(contender, scenario, "bulk_add", jobs)
        before = self._cpu()
        result = self._call(contender, scenario, scenario.operation, jobs)
        return {**result, "jobs": jobs, "server_cpu": self._cpu() - before}

    def _cpu(self) -> float:
        """Returns the CPU seconds of the server since its start."""
        used: dict[str, float] = self.client.info("cpu")
        return used["used_cpu_user"] + used["used_cpu_sys"]

    def _call(self, contender: Contender, scenario: Scenario, operation: str, jobs: int) -> dict[str, Any]:
        order = {
            "url": self._server.url,
            "operation": operation,
            "jobs": jobs,
            "concurrency": scenario.concurrency,
            "seconds": scenario.seconds,
        }
        done = subprocess.run(
            [*contender.command, json.dumps(order)],
            capture_output=True, text=True, timeout=WITHIN, check=False,
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        if done.returncode != 0 or not done.stdout.strip():
            raise RuntimeError(f"{contender.name} failed on {order}:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout.splitlines()[-1])
