"""What a server acknowledged is there after any mix of kills."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pymongo
import pytest
import redis

from jobwire import embedded
from jobwire.embedded import locks, state
from jobwire.embedded.process import started


@dataclass(frozen=True)
class Ledger:
    """Writes numbers to a kind of server and reads them back, through the plain driver."""

    write: Callable[[str, int], None]
    read: Callable[[str], list[int]]


def _valkey_write(url: str, number: int) -> None:
    with redis.Redis.from_url(url) as client:
        client.rpush("ledger", number)


def _valkey_read(url: str) -> list[int]:
    with redis.Redis.from_url(url) as client:
        return [int(number) for number in client.lrange("ledger", 0, -1)]


def _postgres_write(url: str, number: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create table if not exists ledger (number int)")
        connection.execute("insert into ledger values (%s)", [number])


def _postgres_read(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [number for (number,) in connection.execute("select number from ledger order by number")]


def _mongo_write(url: str, number: int) -> None:
    with pymongo.MongoClient(url) as client:
        client.test.ledger.insert_one({"_id": number})


def _mongo_read(url: str) -> list[int]:
    with pymongo.MongoClient(url) as client:
        return [entry["_id"] for entry in client.test.ledger.find().sort("_id")]


LEDGERS = {
    "valkey": Ledger(_valkey_write, _valkey_read),
    "postgres": Ledger(_postgres_write, _postgres_read),
    "mongo": Ledger(_mongo_write, _mongo_read),
}

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("kind", LEDGERS)]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def test_a_user_killed_with_the_only_share_loses_nothing(tmp_path, user, kind):
    victim = user(kind, tmp_path)
    url = victim.joined()
    for number in range(5):
        LEDGERS[kind].write(url, number)
    victim.kill()
    with getattr(embedded, kind)(tmp_path) as server:
        assert LEDGERS[kind].read(server.url) == [0, 1, 2, 3, 4]


def test_a_killed_server_comes_back_at_the_same_url_with_everything(tmp_path, kind):
    with getattr(embedded, kind)(tmp_path) as server:
        url, pid = server.url, server.pid
        for number in range(5):
            LEDGERS[kind].write(url, number)
        kill(pid)
        locks.wait_until(lambda: server.pid not in (0, pid), 30, "the server is not started again")
        assert server.url == url
        assert LEDGERS[kind].read(url) == [0, 1, 2, 3, 4]
        LEDGERS[kind].write(url, 5)


def test_user_keeper_and_server_killed_together_lose_nothing(tmp_path, user, kind):
    victim = user(kind, tmp_path)
    url = victim.joined()
    for number in range(5):
        LEDGERS[kind].write(url, number)
    left = state.read(Path(tmp_path) / kind)
    assert left is not None
    kill(left.keeper)
    kill(left.pid)
    victim.kill()
    locks.wait_until(lambda: started(left.keeper) is started(left.pid) is None, 20, "the killed still live")
    with getattr(embedded, kind)(tmp_path) as server:
        assert LEDGERS[kind].read(server.url) == [0, 1, 2, 3, 4]
        assert server.url == url
