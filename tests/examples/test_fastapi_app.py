"""The example of FastAPI: an order and its job are committed together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import ModuleType

import httpx
import psycopg
import pytest

from jobwire import State


@pytest.fixture
def shop(load: Callable[..., ModuleType], database: str) -> ModuleType:
    with psycopg.connect(database) as db:
        db.execute("create table orders (id serial primary key, item text, pieces int, label text)")
    return load("fastapi_app", DATABASE_URL=database, JOBWIRE_URL=f"pgboss+{database}")


@pytest.fixture
async def client(shop: ModuleType) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=shop.web)
    async with (
        shop.web.router.lifespan_context(shop.web),
        httpx.AsyncClient(transport=transport, base_url="http://shop") as client,
    ):
        yield client


async def test_an_order_is_shipped_by_a_worker(shop, client):
    answer = await client.post("/orders", params={"item": "chair", "pieces": 4})
    assert answer.status_code == 201
    order, job = answer.json()["order"], answer.json()["job"]
    assert (await client.get(f"/orders/{order}")).json() == {"item": "chair", "label": None}
    async with shop.jobs.worker():
        assert await shop.ship.wait(job, timeout=30) == f"PARCEL-{order}"
    assert (await client.get(f"/orders/{order}")).json() == {"item": "chair", "label": f"PARCEL-{order}"}


async def test_an_order_that_is_rolled_back_leaves_no_job(shop, client):
    answer = await client.post("/orders", params={"item": "chair", "pieces": 400})
    assert answer.status_code == 409
    assert (await client.get("/orders/1")).status_code == 404
    counts = await shop.jobs.queue("shipping").counts()
    assert sum(counts.values()) == 0
    answer = await client.post("/orders", params={"item": "table", "pieces": 1})
    assert answer.status_code == 201
    assert (await shop.jobs.queue("shipping").counts())[State.WAITING] == 1
