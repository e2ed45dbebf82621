"""Stores to break, and the findings about them. Servers whose settings are broken are not those of other tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
import redis.asyncio as redis
from psycopg import sql
from pymongo import MongoClient
from pymongo.collection import Collection

from jobwire import connect, embedded
from jobwire.doctor import Examination, Finding, Severity, Thresholds, examine, fix
from jobwire.embedded import Server


async def look(url: str, **limits: Any) -> Examination:
    """Looks at a store as `jobwire doctor` does."""
    return await examine(connect(url), Thresholds(**limits))


async def finding(url: str, code: str, **limits: Any) -> Finding | None:
    """Returns the finding of this code, if there is one."""
    return next((one for one in (await look(url, **limits)).findings if one.code == code), None)


@dataclass(frozen=True)
class Break:
    """A way to break a store, and the finding that must come of it."""

    code: str
    by: Callable[..., Awaitable[Any]]
    severity: Severity
    evidence: str
    remedy: str
    limits: Mapping[str, Any] = field(default_factory=dict)
    fixable: bool = False
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.code

    async def prove(self, url: str, broken: Any) -> None:
        """Breaks the store, sees the finding, fixes it if that is possible, and sees it gone."""
        assert await finding(url, self.code, **self.limits) is None
        await self.by(broken)
        found = await finding(url, self.code, **self.limits)
        assert found is not None, (await look(url, **self.limits)).findings
        assert (found.severity, found.fixable) == (self.severity, self.fixable), found
        assert self.evidence in found.evidence, found
        assert self.remedy in found.remedy, found
        assert found.title
        assert found.risk
        if self.fixable:
            for _ in range(2):  # a fix does no harm when it is made twice
                [fixed] = await fix(connect(url), [found])
                assert fixed.done, fixed
            assert await finding(url, self.code, **self.limits) is None


# --- Redis ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A durable server of these tests alone, one for each worker of pytest-xdist."""
    with embedded.valkey(tmp_path_factory.mktemp("doctor")) as server:
        yield server


@pytest.fixture
async def client(valkey: Server) -> AsyncIterator[redis.Redis]:
    """The driver's connection to it. Settings that a test changed are restored."""
    async with redis.Redis.from_url(valkey.url, decode_responses=True) as client:
        before = await client.config_get("*")
        yield client
        changed = {name: value for name, value in (await client.config_get("*")).items() if before[name] != value}
        for name in changed:
            await client.config_set(name, before[name])


@pytest.fixture
def bullmq_url(valkey: Server, unique: str) -> str:
    return f"bullmq+{valkey.url}?prefix={unique}"


@pytest.fixture
def bridgemq_url(valkey: Server, unique: str) -> str:
    return f"bridgemq+{valkey.url}?namespace={unique}"


# --- PostgreSQL and MongoDB -----------------------------------------------------------------------------------------


@pytest.fixture
async def own_database(jobwire_postgres: Server, unique: str) -> AsyncIterator[str]:
    """The URL of a database of this test alone, so that its settings can be changed."""
    name = sql.Identifier(unique)
    async with await psycopg.AsyncConnection.connect(jobwire_postgres.url, autocommit=True) as admin:
        await admin.execute(sql.SQL("CREATE DATABASE {}").format(name))
        server, _, query = jobwire_postgres.url.partition("?")
        yield f"{server.rpartition('/')[0]}/{unique}{f'?{query}' if query else ''}"
        await admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.fixture
def pgboss_url(own_database: str) -> str:
    return f"pgboss+{own_database}"


@pytest.fixture
async def session(own_database: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A session in the schema of pg-boss."""
    async with await psycopg.AsyncConnection.connect(own_database, autocommit=True) as session:
        await session.execute("SET search_path TO pgboss, public")
        yield session


@pytest.fixture
def monque_url(jobwire_monque_url: str) -> str:
    return jobwire_monque_url


@pytest.fixture
def jobs(jobwire_mongo: Server, monque_url: str) -> Iterator[Collection[dict[str, Any]]]:
    """The collection of jobs, as any other program sees it."""
    with MongoClient(jobwire_mongo.url) as client:
        yield client[monque_url.partition("?")[0].rpartition("/")[2]]["monque_jobs"]


# --- any store ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["bullmq", "pgboss", "monque", "bridgemq"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of each protocol in turn."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url
