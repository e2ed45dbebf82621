"""Costs of calls to a store: commands or statements, and CPU seconds of this process and of the server."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from bench.large_store import Store
from pymongo import monitoring

from jobwire.backends.pgboss.connection.pool import Pool
from jobwire.backends.redisio.connect import RedisStore

_TICKS = os.sysconf("SC_CLK_TCK")


class Cost:
    """Counts between `begin` and `end`."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.commands = 0
        self._began: tuple[int, float, float] = (0, 0.0, 0.0)

    def begin(self) -> None:
        self._began = self._now()

    def end(self) -> tuple[float, float, float]:
        """Returns commands, CPU seconds of this process, CPU seconds of the server."""
        now = self._now()
        return now[0] - self._began[0], now[1] - self._began[1], now[2] - self._began[2]

    def _now(self) -> tuple[int, float, float]:
        return self.commands, time.process_time(), cpu_seconds(self._pid)


class _MongoCost(Cost, monitoring.CommandListener):
    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.commands += event.command_name not in ("hello", "endSessions")

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


@contextlib.contextmanager
def cost_of(store: Store) -> Generator[Cost]:
    """Yields a counter of what connections cost that are opened inside the block."""
    cost = (_MongoCost if store.protocol == "monque" else Cost)(store.server.pid)
    if isinstance(cost, _MongoCost):
        monitoring.register(cost)
        yield cost
        return
    one, several = _CALLS["pgboss" if store.protocol == "pgboss" else "redis"]
    with contextlib.ExitStack() as stack:
        for owner, name in (*one, *several):
            stack.enter_context(_counting(cost, owner, name, many=(owner, name) in several))
        yield cost


_CALLS: dict[str, tuple[Sequence[tuple[Any, str]], Sequence[tuple[Any, str]]]] = {
    "pgboss": ((), ((Pool, "run"),)),
    "redis": (((RedisStore, "call"), (RedisStore, "call_bare")), ((RedisStore, "calls"), (RedisStore, "calls_bare"))),
}
"""The methods that send one command, and those that send several."""


@contextlib.contextmanager
def _counting(cost: Cost, owner: Any, name: str, *, many: bool) -> Generator[None]:
    sent = getattr(owner, name)

    async def counted(self: Any, *args: Any, **options: Any) -> Any:
        cost.commands += len(args[0]) if many else 1
        return await sent(self, *args, **options)

    with mock.patch.object(owner, name, counted):
        yield


def cpu_seconds(pid: int) -> float:
    """Returns the CPU seconds of a process and of its children."""
    total = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(folder.name) == pid:
                total += sum(int(number) for number in fields[11:15])
            elif int(fields[1]) == pid:
                total += int(fields[11]) + int(fields[12])
    return total / _TICKS
