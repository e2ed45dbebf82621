"""Who runs against whom, and the virtualenv of those that jobwire does not depend on."""

from __future__ import annotations

import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENTS = Path(__file__).parent / "clients"
BENCH_VENV = ROOT / ".venv-bench-pgboss"
NODE = Path(sys.prefix) / "bin" / "node"
NODE_PEERS = ROOT / "tests" / "interop" / "node-pgboss"
PEERS = ("procrastinate==3.10.0", "pgqueuer==1.6.0", "asyncpg==0.32.0", "psycopg-pool==3.3.3", "uvloop==0.23.0")


@dataclass(frozen=True)
class Contender:
    """A client library at one setting, run as a process that takes an order as its last argument."""

    name: str
    command: tuple[str, ...]
    share: float = 1.0
    """Of the jobs of a drain: a slow one is given fewer, so that a run ends. Rates are by its own number."""


def contenders() -> list[Contender]:
    """Ours first. pg-boss twice: one worker with a large batch, and several local workers with smaller ones."""
    node = (str(NODE), str(CLIENTS / "node.mjs"))
    python = str(peers_python())
    return [
        Contender("jobwire", (sys.executable, str(CLIENTS / "ours.py"))),
        Contender("pg-boss, one worker", (*node, "1")),
        Contender("pg-boss, 4 local workers", (*node, "4")),
        Contender("procrastinate", (python, str(CLIENTS / "with_procrastinate.py")), share=0.1),
        Contender("pgqueuer", (python, str(CLIENTS / "with_pgqueuer.py"))),
    ]


def peers_python() -> Path:
    """The interpreter of a virtualenv with the other Python queues and the driver that jobwire uses."""
    python, ready = BENCH_VENV / "bin" / "python", BENCH_VENV / ".ready"
    wanted = "\n".join([*PEERS, f"psycopg[binary]=={metadata.version('psycopg')}"])
    if not ready.exists() or ready.read_text() != wanted:
        venv.create(BENCH_VENV, with_pip=True, clear=True)
        (BENCH_VENV / ".gitignore").write_text("*\n")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted.split("\n")], check=True)
        ready.write_text(wanted)
    return python
