"""Who runs against whom, and the virtualenvs of those that jobwire does not depend on."""

from __future__ import annotations

import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# arq needs a driver older than Celery's, so it has a virtualenv of its own.
_ARQ = ("arq==0.28.0", "redis[hiredis]==5.3.1")
_OTHERS = (
    "celery==5.7.0",
    "dramatiq==2.2.1",
    "hiredis==3.5.0",
    "huey==3.5.4",
    "redis==8.1.0",
    "rq==2.12.0",
    "saq==0.26.4",
    "streaq==7.2.0",
    "taskiq==0.13.0",
    "taskiq-redis==1.2.4",
)


MANY = 1_000_000


@dataclass(frozen=True)
class Peer:
    """A library beside jobwire."""

    title: str
    packages: tuple[str, ...]
    widest: int = MANY
    """How many jobs at once a worker can run in one process."""
    most_alone: int = MANY
    """How many jobs a run at concurrency 1 has at most. With its defaults, arq starts two a second then."""


@dataclass(frozen=True)
class Contender:
    """A client library, run as a process that takes an order as its last argument."""

    name: str
    command: tuple[str, ...]
    widest: int
    most_alone: int


PEERS = {
    "celery": Peer("Celery 5.7", _OTHERS),
    "rq": Peer("RQ 2.12", _OTHERS, widest=1),
    "dramatiq": Peer("Dramatiq 2.2", _OTHERS),
    "huey": Peer("Huey 3.5", _OTHERS),
    "arq": Peer("arq 0.28", _ARQ, most_alone=20),
    "saq": Peer("SAQ 0.26", _OTHERS),
    "streaq": Peer("streaQ 7.2", _OTHERS),
    "taskiq": Peer("taskiq 0.13", _OTHERS),
}


def contenders(only: list[str] | None = None) -> list[Contender]:
    """Returns jobwire first, then the peers of the given names, or all of them."""
    peers = [
        Contender(peer.title, _command(_python_with(peer.packages), f"with_{name}"), peer.widest, peer.most_alone)
        for name, peer in PEERS.items()
        if not only or name in only
    ]
    return [Contender("jobwire", _command(Path(sys.executable), "ours"), MANY, MANY), *peers]


def _command(python: Path, client: str) -> tuple[str, ...]:
    return (str(python), "-m", "bench.peers.client", client)


def _python_with(packages: tuple[str, ...]) -> Path:
    """Returns the interpreter of a virtualenv with these packages. Makes it if need be."""
    folder = ROOT / (".venv-bench-arq" if packages is _ARQ else ".venv-bench-peers")
    python, ready = folder / "bin" / "python", folder / ".ready"
    wanted = "\n".join(packages)
    if not ready.exists() or ready.read_text() != wanted:
        print(f"making {folder.name}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        (folder / ".gitignore").write_text("*\n")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        ready.write_text(wanted)
    return python
