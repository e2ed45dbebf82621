"""Servers that close the connections of one client, which is known to them by a name of its own."""

from __future__ import annotations

import time

import psycopg
import redis

_WITHIN = 20.0


def close_redis_connections(server: str, name: str) -> int:
    """Has a server close the connections of the client of this name. Returns their number. The caller's event loop
    stands still meanwhile."""
    with redis.Redis.from_url(server) as client:
        found = [one["id"] for one in client.client_list() if one["name"] == name]
        for number in found:
            client.client_kill_filter(_id=number)
    return len(found)


def close_postgres_connections(server: str, name: str) -> int:
    """As `close_redis_connections`, and returns when the server has ended their processes."""
    theirs = "FROM pg_stat_activity WHERE application_name = %s"
    with psycopg.connect(server, autocommit=True) as connection:
        closed = len(connection.execute(f"SELECT pg_terminate_backend(pid) {theirs}", [name]).fetchall())
        until = time.monotonic() + _WITHIN
        while connection.execute(f"SELECT 1 {theirs}", [name]).fetchone():
            assert time.monotonic() < until, f"connections of {name} are still open"
            time.sleep(0.01)
    return closed
