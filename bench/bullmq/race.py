"""Runs one contender on one scenario, on an empty server, and notes what both sides spent."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from bench.bullmq.contenders import Contender
from bench.bullmq.scenarios import Scenario
from redis import Redis

QUEUE = "bench"
PREFIX = "bull"
CHUNK = 1000
IDLE = 0.01
WARMUP = 20
FILL_WITHIN = 300
RUN_WITHIN = 600


@dataclass
class Race:
    """One server, and the contender that fills queues for all."""

    url: str
    filler: Contender

    def __post_init__(self) -> None:
        self.server = Redis.from_url(self.url, decode_responses=True)

    def order(self, scenario: Scenario, kind: str | None = None) -> str:
        fields = {"scenario": kind or scenario.kind, "jobs": scenario.jobs, "concurrency": scenario.concurrency}
        place = {"url": self.url, "prefix": PREFIX, "queue": QUEUE}
        return json.dumps({**fields, **place, "chunk": CHUNK, "idle": IDLE, "warmup": WARMUP})

    def prepare(self, scenario: Scenario) -> None:
        """An empty server, or one with the jobs that are to be worked."""
        self.server.flushall()
        if scenario.prefilled:
            self._call(self.filler, self.order(scenario, "bulk_add"), FILL_WITHIN)
        self.server.config_resetstat()

    def run(self, contender: Contender, scenario: Scenario) -> dict[str, Any]:
        """What the contender measured, and the server's time per job in scripts and in all."""
        self.prepare(scenario)
        result = self._call(contender, self.order(scenario), RUN_WITHIN)
        self._check(scenario)
        if "waits" in result:
            result["waits"] = [round(wait, 6) for wait in result["waits"]]
        return {**result, "server": self._server_time(scenario)}

    def _call(self, contender: Contender, order: str, within: float) -> dict[str, Any]:
        done = subprocess.run([*contender.command, order], capture_output=True, text=True, timeout=within, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{contender.name} failed on {order}:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout.splitlines()[-1])

    def _check(self, scenario: Scenario) -> None:
        """The work was done, all of it: a contender that is quick because it does less is found here."""
        key = "wait" if scenario.kind.endswith("add") else "completed"
        count = self.server.llen if key == "wait" else self.server.zcard
        left = count(f"{PREFIX}:{QUEUE}:{key}")
        if left < scenario.jobs:
            raise RuntimeError(f"{scenario.name}: {left} jobs in {key}, expected {scenario.jobs}")

    def _server_time(self, scenario: Scenario) -> dict[str, float]:
        stats: dict[str, dict[str, float]] = self.server.info("commandstats")
        scripts = [stats[name] for name in ("cmdstat_evalsha", "cmdstat_eval", "cmdstat_fcall") if name in stats]
        calls = sum(one["calls"] for one in scripts)
        micros = sum(one["usec"] for one in scripts)
        return {
            "script_calls": calls,
            "script_us_per_call": micros / calls if calls else 0.0,
            "script_us_per_job": micros / scenario.jobs,
        }
