"""BullMQ and BridgeMQ on a cluster: all keys of a place have one slot, which can move to another node."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.crc import key_slot

from faults.stores.bridgemq import BridgeMQ
from faults.stores.bullmq import BullMQ
from faults.stores.redis_store import RedisServer
from faults.stores.store import Running
from jobwire import embedded

_BATCH, _STEP = 20, 0.01
"""Keys that move at a time, and seconds between them, so that a slot is in two places for a while."""


class Slots:
    """A cluster whose slots can be moved."""

    def __init__(self, folder: Path) -> None:
        self._cluster = embedded.valkey_cluster(folder, durable=False)
        for url in self._cluster.urls:
            _ask(url, "CONFIG", "SET", "primaryauth", urlsplit(url).password)  # nodes log in to each other

    @property
    def url(self) -> str:
        return f"cluster://{self._cluster.hosts}/"

    @property
    def pid(self) -> int:
        return self._cluster.pids[0]

    def servers(self, slot: int) -> list[str]:
        """Returns the URLs of all nodes, the owner of the slot first."""
        return sorted(self._cluster.urls, key=lambda url: not _owns(url, slot))

    def move_by_keys(self, slot: int, to: str) -> None:
        """Moves a slot as tools do: key by key, while both nodes serve what they have."""
        source, *_ = self.servers(slot)
        ids = {url: _ask(url, "CLUSTER", "MYID") for url in self._cluster.urls}
        _ask(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
        _ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[to])
        where = [*_address(to), "", 0, 30_000, "AUTH", urlsplit(to).password]
        while keys := _ask(source, "CLUSTER", "GETKEYSINSLOT", slot, _BATCH):
            _ask(source, "MIGRATE", *where, "KEYS", *keys)
            time.sleep(_STEP)
        for url in sorted(self._cluster.urls, key=lambda url: url != to):  # the new owner first
            _ask(url, "CLUSTER", "SETSLOT", slot, "NODE", ids[to])

    def move_at_once(self, slot: int, to: str) -> None:
        """Moves a slot as a whole, as Valkey 9 can: it has one owner at any time."""
        source, *_ = self.servers(slot)
        _ask(source, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", _ask(to, "CLUSTER", "MYID"))
        until = time.monotonic() + 60
        while not all(_owner_in_view(url, slot) == _address(to) for url in self._cluster.urls):
            assert time.monotonic() < until, _ask(source, "CLUSTER", "GETSLOTMIGRATIONS")
            time.sleep(0.02)

    def __enter__(self) -> Slots:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.close()


def _ask(url: str, *command: Any) -> Any:
    with redis.Redis.from_url(url, socket_timeout=60) as client:
        return client.execute_command(*command)


def _address(url: str) -> tuple[str | None, int | None]:
    return urlsplit(url).hostname, urlsplit(url).port


def _owner_in_view(url: str, slot: int) -> tuple[str | None, int | None] | None:
    """Returns the address of the slot's owner, as a node has it."""
    slots = _ask(url, "CLUSTER", "SLOTS")
    found = [owner for first, last, owner, *_replicas in slots if first <= slot <= last]
    return (found[0][0].decode(), found[0][1]) if found else None


def _owns(url: str, slot: int) -> bool:
    return _owner_in_view(url, slot) == _address(url)


class ClusteredServer(RedisServer):
    """The owner of the place's slot has the keys."""

    server: Slots

    def __init__(self, server: Running, place: str) -> None:
        super().__init__(server, f"{{{place}}}")
        self.slot = key_slot(place.encode())

    @staticmethod
    def start(folder: Path) -> Slots:
        return Slots(folder)

    @property
    def servers(self) -> list[str]:
        return self.server.servers(self.slot)


class ClusteredBullMQ(ClusteredServer, BullMQ):
    """BullMQ on a cluster."""


class ClusteredBridgeMQ(ClusteredServer, BridgeMQ):
    """BridgeMQ on a cluster."""
