"""The memory of one jobwire worker while a hundred thousand jobs go through it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

from bench.bullmq.contenders import Contender
from bench.bullmq.race import RUN_WITHIN, Race
from bench.bullmq.scenarios import Scenario

SAMPLE_EVERY = 0.1


def watch(race: Race, contender: Contender, jobs: int) -> dict[str, Any]:
    """Resident megabytes over the run: sampled, and read at tenths of it. The first tenth is the start-up."""
    scenario = Scenario("memory", "memory", "process", jobs, 100, prefilled=True)
    race.prepare(scenario)
    process = subprocess.Popen([*contender.command, race.order(scenario)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + RUN_WITHIN
    samples: list[float] = []
    try:
        while process.poll() is None:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{jobs} jobs took more than {RUN_WITHIN} s")
            resident = _resident(process.pid)
            if resident:
                samples.append(resident)
            time.sleep(SAMPLE_EVERY)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"{contender.name} ended with {process.returncode}")
    tenths = [round(samples[min(len(samples) - 1, len(samples) * part // 10)], 1) for part in range(1, 11)]
    return {"jobs": jobs, "samples": len(samples), "tenths_mb": tenths, "most_mb": round(max(samples), 1)}


def _resident(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    lines = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(lines[0].split()[1]) / 1024 if lines else 0.0
