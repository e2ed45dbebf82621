"""The API over tables and queues that the tests of a module share, and clients of each role."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from psycopg import sql

from campaigns.api.clients import TOKENS, client_of
from jobwire.campaigns import CampaignService, connect
from jobwire.campaigns.api import Role, campaign_api
from jobwire.embedded import Server

CHANNELS = "username,category\n@news_one,tea\n@news_two,tea\n@news_three,coffee\n"


@pytest.fixture(scope="module")
def schemas(jobwire_postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The schemas of the module, with a batch of three channels, `news`, and the template `hello`."""
    tables = f"test_{uuid.uuid4().hex[:12]}"
    names = {"schema": tables, "queue_schema": f"{tables}_queues"}
    file: Path = tmp_path_factory.mktemp("channels") / "channels.csv"
    file.write_text(CHANNELS)

    async def prepare() -> None:
        async with CampaignService(jobwire_postgres.url, **names) as service:
            await service.init()
            await service.import_channels(file, batch="news")
            await service.add_template("hello", "Hello {username}, meet {product}!")

    async def drop() -> None:
        async with await connect(jobwire_postgres.url) as connection:
            await connection.execute("SET client_min_messages TO warning")
            for name in (tables, f"{tables}_queues", f"{tables}_queues_jobwire"):
                await connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))

    asyncio.run(prepare())
    yield names
    asyncio.run(drop())


@pytest.fixture
async def service(jobwire_postgres: Server, schemas: dict[str, str]) -> AsyncIterator[CampaignService]:
    async with CampaignService(jobwire_postgres.url, **schemas) as opened:
        yield opened


@pytest.fixture
async def as_role(service: CampaignService) -> AsyncIterator[Callable[[Role | None], httpx.AsyncClient]]:
    """Returns a client with the token of a role."""
    app = campaign_api(service, tokens=TOKENS, upload_limit=2000)
    async with AsyncExitStack() as stack:

        def make(role: Role | None) -> httpx.AsyncClient:
            client = client_of(app, role)
            stack.push_async_callback(client.aclose)
            return client

        yield make


@pytest.fixture
def api(as_role: Any) -> httpx.AsyncClient:
    """A client that may do everything."""
    return as_role(Role.ADMIN)


@pytest.fixture
async def database(jobwire_postgres: Server, schemas: dict[str, str]) -> AsyncIterator[Any]:
    """A connection that sees the tables."""
    async with await connect(jobwire_postgres.url) as connection:
        await connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schemas["schema"])))
        yield connection


@pytest.fixture
def new(unique: str) -> Callable[..., dict[str, Any]]:
    """Returns the body of a campaign with a name of the test's own."""

    def body(**changes: Any) -> dict[str, Any]:
        return {
            "name": unique,
            "batch": "news",
            "template": "hello",
            "rate": 60,
            "params": {"product": "Tea"},
        } | changes

    return body
