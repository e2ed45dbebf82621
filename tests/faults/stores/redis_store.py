"""The server of the two protocols on Redis, and its keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from faults.holders import holder_of
from faults.stores.store import Store
from jobwire import embedded
from jobwire.embedded import Server


class RedisServer(Store):
    """A Valkey server whose append-only file is synced before each answer."""

    @staticmethod
    def start(folder: Path) -> Server:
        return embedded.valkey(folder)

    @property
    def servers(self) -> list[str]:
        """The driver's URLs of all servers, the one that has the keys first."""
        return [self.server.url]

    @contextmanager
    def client(self) -> Iterator[redis.Redis]:
        with redis.Redis.from_url(self.servers[0], decode_responses=True, socket_timeout=30) as client:
            yield client

    def keys(self) -> list[str]:
        """Returns the keys of the place, without its name."""
        with self.client() as client:
            return sorted(key.removeprefix(f"{self.place}:") for key in client.scan_iter(f"{self.place}:*", count=1000))

    def connections(self) -> list[str]:
        return [one for url in self.servers for one in clients_of(url)]

    def remove(self) -> None:
        with self.client() as client:
            for key in client.scan_iter(f"{self.place}:*", count=1000):
                client.unlink(key)


def clients_of(url: str) -> list[str]:
    """Describes the clients of a server, without this one, its replicas, the sentinels that watch it, and nodes that
    have moved keys to it: they keep that connection for ten seconds."""
    with redis.Redis.from_url(url, decode_responses=True, socket_timeout=30) as client:
        own = str(client.client_id())
        found = [*client.client_list(_type="normal"), *client.client_list(_type="pubsub")]
    return [
        f"{one['name']!r} for {one['age']} s, last {one['cmd']}: {holder_of(int(one['addr'].rpartition(':')[2]))}"
        for one in found
        if one["id"] != own and not one["name"].startswith("sentinel-") and one["cmd"] != "restore-asking"
    ]
