"""Fixtures of the engine's own tests. They run on the in-process store; what differs by protocol has its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest

from jobwire import Connection, Queue, connect

_names = itertools.count()


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    async with connect(f"memory:worker-tests-{next(_names)}") as opened:
        yield opened


@pytest.fixture
async def queue(connection: Connection) -> AsyncIterator[Queue]:
    async with Queue("work", connection) as opened:
        yield opened
