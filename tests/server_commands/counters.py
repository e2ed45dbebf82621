"""Counts what jobs cost a server: calls over the network, and the commands or statements that these run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from pymongo import AsyncMongoClient, monitoring
from redis import Redis

from jobwire.backends.monque.connection import store as monque_store
from jobwire.backends.pgboss.connection.pipelined import PipelinedConnection

from .recorded import Counts

Read = Callable[[], Counts]
_SCRIPTS = frozenset({"evalsha", "eval", "fcall"})
_NOT_OF_JOBS = frozenset({"info", "time", "client", "hello", "auth", "select", "ping", "script", "config", "command"})
_UPKEEP = frozenset({"hello", "ping", "endSessions", "killCursors", "getMore"})
"""Commands that no job causes. The change stream is read again every second, whether or not there are jobs."""


def count_of_valkey(url: str) -> Read:
    """Counts script calls, and the commands in and outside of them. The server must have no other clients."""
    client = Redis.from_url(url, decode_responses=True)

    def read() -> Counts:
        found: dict[str, Any] = client.info("commandstats")
        calls = Counter[str]()
        for name, stats in found.items():
            calls[name.removeprefix("cmdstat_").partition("|")[0]] += stats["calls"]
        scripts = sum(calls[name] for name in _SCRIPTS)
        commands = sum(count for name, count in calls.items() if name not in _SCRIPTS | _NOT_OF_JOBS)
        return {"script calls": scripts, "commands": commands}

    return read


def count_of_postgres(monkeypatch: pytest.MonkeyPatch) -> Read:
    """Counts round trips of this process, and the statements in them."""
    counts: Counts = {"round trips": 0, "statements": 0}
    run = PipelinedConnection.run

    async def counted(self: PipelinedConnection, calls: Sequence[Any], *args: Any, **options: Any) -> Any:
        counts["round trips"] += 1
        counts["statements"] += len(calls)
        return await run(self, calls, *args, **options)

    monkeypatch.setattr(PipelinedConnection, "run", counted)
    return lambda: dict(counts)


class _Listener(monitoring.CommandListener):
    def __init__(self) -> None:
        self.counts: Counts = {"commands": 0, "updates": 0}

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name not in _UPKEEP:
            self.counts["commands"] += 1
            self.counts["updates"] += len(event.command.get("updates", ()))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


def count_of_mongo(monkeypatch: pytest.MonkeyPatch) -> Read:
    """Counts commands of connections that are opened from now on, and the updates that they contain."""
    listener = _Listener()
    client = partial(AsyncMongoClient, event_listeners=[listener])
    monkeypatch.setattr(monque_store, "AsyncMongoClient", client)
    return lambda: dict(listener.counts)
