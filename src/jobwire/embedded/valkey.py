"""A Valkey server, alone or as a node of a cluster."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from jobwire.embedded import binaries, resp
from jobwire.embedded.listening import listens
from jobwire.embedded.ownership import Account, make_data_folder, open_file, secret

# One run on a busy machine, writes per second, one at a time and pipelined by 100: synced always 3.5k and 86k, every
# second 8.8k and 132k, no file at all 20k and 162k. Batches hide most of the cost, so the safe setting is the default.
_DURABLE = ("--appendonly", "yes", "--appendfsync", "always")
_THROWAWAY = ("--appendonly", "no")
_SETTINGS = "valkey.conf"


@dataclass(frozen=True)
class Valkey:
    """One server with a random password. Durable: every acknowledged write is in the append-only file and synced."""

    durable: bool = True
    stop_signal = signal.SIGTERM
    ports = 1

    @property
    def name(self) -> str:
        return "valkey" if self.durable else "valkey-throwaway"

    def check(self) -> None:
        binaries.VALKEY.find()

    def prepare(self, folder: Path, account: Account | None) -> None:
        make_data_folder(folder / "data", account)
        # In a file, since every user of the machine can read a command line.
        with os.fdopen(open_file(folder / _SETTINGS, os.O_WRONLY | os.O_TRUNC), "w") as settings:
            settings.write(f"requirepass {self.password(folder)}\n")

    def password(self, folder: Path) -> str:
        return secret(folder / "password")

    def command(self, folder: Path, ports: tuple[int, ...]) -> list[str]:
        return [
            *(str(binaries.VALKEY.find()), str(folder / _SETTINGS), "--bind", "127.0.0.1", "--port", str(ports[0])),
            *("--dir", str(folder / "data"), "--daemonize", "no", "--save", ""),
            *(_DURABLE if self.durable else _THROWAWAY),
        ]

    def ready(self, folder: Path, ports: tuple[int, ...], pid: int) -> bool:
        if not listens(pid, ports[0]):
            return False
        password = self.password(folder)
        try:
            # Refused while it loads its file. The process id distinguishes our server from another of the same user.
            info = resp.fields(resp.ask(ports[0], "INFO", "server", password=password))
            ready = resp.ask(ports[0], "PING", password=password) == "PONG"
        except (OSError, resp.Refused):
            return False
        return ready and info.get("process_id") == str(pid)

    def url(self, folder: Path, ports: tuple[int, ...]) -> str:
        return f"redis://:{self.password(folder)}@127.0.0.1:{ports[0]}/0"


@dataclass(frozen=True)
class ValkeyNode(Valkey):
    """A node of a cluster. The second port is its bus. It is ready when it answers: `cluster` assigns the slots."""

    number: int = 1
    of: int = 3
    ports = 2

    @property
    def name(self) -> str:
        return f"valkey-cluster-{self.of}{'' if self.durable else '-throwaway'}/node-{self.number}"

    def password(self, folder: Path) -> str:
        return secret(folder.parent / "password")  # a client uses one password for all nodes

    def command(self, folder: Path, ports: tuple[int, ...]) -> list[str]:
        return [
            *super().command(folder, ports),
            *("--cluster-enabled", "yes", "--cluster-port", str(ports[1]), "--cluster-announce-ip", "127.0.0.1"),
            *("--cluster-node-timeout", "5000", "--cluster-config-file", "nodes.conf"),
        ]
