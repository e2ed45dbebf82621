"""The server of the two protocols on Redis, and its keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from faults.stores.store import Store
from jobwire import embedded
from jobwire.embedded import Server


class RedisServer(Store):
    """A Valkey server whose append-only file is synced before each answer."""

    @staticmethod
    def start(folder: Path) -> Server:
        return embedded.valkey(folder)

    @contextmanager
    def client(self) -> Iterator[redis.Redis]:
        with redis.Redis.from_url(self.server.url, decode_responses=True, socket_timeout=30) as client:
            yield client

    def keys(self) -> list[str]:
        """Returns the keys of the place, without its name."""
        with self.client() as client:
            return sorted(key.removeprefix(f"{self.place}:") for key in client.scan_iter(f"{self.place}:*", count=1000))

    def connections(self) -> int:
        with self.client() as client:
            return len(client.client_list()) - 1

    def remove(self) -> None:
        with self.client() as client:
            for key in client.scan_iter(f"{self.place}:*", count=1000):
                client.unlink(key)
