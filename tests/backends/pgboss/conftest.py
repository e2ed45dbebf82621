"""A pg-boss schema of the test's own, and a plain connection for looking at what jobwire stored in it."""

from __future__ import annotations

import pytest

from jobwire import Connection
from jobwire.backends.pgboss import Boss
from jobwire.embedded import Server


@pytest.fixture
def url(jobwire_postgres: Server, unique: str) -> str:
    return f"pgboss+{jobwire_postgres.url}?schema={unique}"


@pytest.fixture
def boss(connection: Connection) -> Boss:
    return Boss(connection)
