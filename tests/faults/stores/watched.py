"""BullMQ and BridgeMQ on Valkey with a replica, which a sentinel promotes.

A replica gets writes after they were acknowledged, so a master that dies takes some with it: `store_losses.py` measures
that. Here the master dies when the replica has all that was acknowledged, so that the rules of the checker hold.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

import redis

from faults.stores.bridgemq import BridgeMQ
from faults.stores.bullmq import BullMQ
from faults.stores.redis_store import RedisServer, clients_of
from jobwire.embedded import binaries

_NAME = "main"
_PAUSE_MS = 300_000
"""Longer than any wait for the replica: the master takes no writes until it is killed."""


class Watched:
    """A master, its replica, and a sentinel that watches both. The two change places with each `fail_over`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._master, self._replica, self._sentinel = _lasting_ports(3)
        try:
            self._start(self._master)
            self._start(self._replica, "--replicaof", f"127.0.0.1 {self._master}")
            _wait(lambda: _in_step(self._replica))
            self._start_sentinel()
        except BaseException:
            self._stack.close()
            raise

    def _start(self, port: int, *more: str) -> None:
        home = self._folder / str(port)
        home.mkdir(parents=True, exist_ok=True)
        common = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(home), "--save", ""]
        quick = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"]
        self._run(port, [*common, *quick, *more])

    def _start_sentinel(self) -> None:
        """It promotes only when it is asked to: on a busy machine a server may be silent for a while."""
        home = self._folder / "sentinel"
        home.mkdir(parents=True)
        settings = home / "sentinel.conf"
        settings.write_text(
            f"port {self._sentinel}\nbind 127.0.0.1\ndir {home}\nsentinel monitor {_NAME} 127.0.0.1 {self._master} 1\n"
            f"sentinel down-after-milliseconds {_NAME} 600000\nsentinel failover-timeout {_NAME} 4000\n"
        )
        self._run(self._sentinel, [str(settings), "--sentinel"])
        _wait(self._replica_is_known)

    def _run(self, port: int, arguments: list[str]) -> None:
        command = [str(binaries.VALKEY.find()), *arguments]
        self._processes[port] = process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        _wait(lambda: _answers(port))

    @property
    def url(self) -> str:
        return f"sentinel://127.0.0.1:{self._sentinel}/{_NAME}/0"

    @property
    def servers(self) -> list[str]:
        return [f"redis://127.0.0.1:{port}/0" for port in (self._master, self._replica)]

    @property
    def sentinel(self) -> str:
        return f"redis://127.0.0.1:{self._sentinel}/0"

    @property
    def pid(self) -> int:
        return self._processes[self._master].pid

    def fail_over(self) -> None:
        """Kills the master when the replica has all that was acknowledged, and has the replica promoted. The killed
        server comes back as the replica."""
        old, new = self._master, self._replica
        with _client(old) as master, _client(new) as replica:
            master.execute_command("CLIENT", "PAUSE", _PAUSE_MS, "WRITE")
            written = master.info("replication")["master_repl_offset"]
            _wait(lambda: replica.info("replication")["slave_repl_offset"] >= written)
            os.kill(self._processes[old].pid, signal.SIGKILL)
            self._processes[old].wait()
        with _client(self._sentinel) as sentinel:
            _wait(lambda: _accepted(sentinel))
            _wait(lambda: sentinel.sentinel_get_master_addr_by_name(_NAME)[1] == new)
        self._master, self._replica = new, old
        self._start(old, "--replicaof", f"127.0.0.1 {new}")
        _wait(lambda: _in_step(old))
        _wait(self._replica_is_known)

    def _replica_is_known(self) -> bool:
        with _client(self._sentinel) as sentinel:
            found = sentinel.sentinel_slaves(_NAME)
            return [(one["port"], one["flags"]) for one in found] == [(self._replica, "slave")]

    def __enter__(self) -> Watched:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _lasting_ports(number: int) -> list[int]:
    """Returns free ports that the system gives to no client, so that the port of a killed server stays free."""
    lowest_of_clients = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < number:
            one = held.enter_context(socket.socket())
            with suppress(OSError):
                one.bind(("127.0.0.1", random.randrange(1024, max(lowest_of_clients, 10_000))))
                found.append(one.getsockname()[1])
    return found


def _client(port: int) -> redis.Redis:
    return redis.Redis(port=port, decode_responses=True, socket_timeout=30)


def _answers(port: int) -> bool:
    with suppress(redis.RedisError), _client(port) as client:
        return bool(client.ping())
    return False


def _in_step(port: int) -> bool:
    with suppress(redis.RedisError), _client(port) as client:
        return client.info("replication").get("master_link_status") == "up"
    return False


def _accepted(sentinel: redis.Redis) -> bool:
    """Asks for a promotion. It is refused while the sentinel has not seen the replica for some seconds."""
    with suppress(redis.ResponseError):
        sentinel.execute_command("SENTINEL", "FAILOVER", _NAME)
        return True
    return False


def _wait(look: Callable[[], bool], within: float = 60.0) -> None:
    until = time.monotonic() + within
    while not look():
        assert time.monotonic() < until, f"not within {within:g} s"
        time.sleep(0.02)


class WatchedServer(RedisServer):
    """The server that the sentinel names as the master has the keys."""

    server: Watched

    @staticmethod
    def start(folder: Path) -> Watched:
        return Watched(folder)

    @property
    def servers(self) -> list[str]:
        return self.server.servers

    def connections(self) -> list[str]:
        return super().connections() + clients_of(self.server.sentinel)


class WatchedBullMQ(WatchedServer, BullMQ):
    """BullMQ through a sentinel."""


class WatchedBridgeMQ(WatchedServer, BridgeMQ):
    """BridgeMQ through a sentinel."""
