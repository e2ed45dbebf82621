"""Names the machine that a bench runs on."""

from __future__ import annotations

import platform
from pathlib import Path


def processor() -> str:
    """Returns the name of the processor, as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
