"""FastAPI on PostgreSQL: an order and the job that ships it are committed together, or neither of them is.

The worker is a process of its own: python fastapi_app.py

Both need DATABASE_URL, and JOBWIRE_URL for the same database: pgboss+postgresql://…
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import psycopg
from fastapi import Depends, FastAPI, HTTPException

from jobwire import App, current_job

DATABASE_URL = os.environ["DATABASE_URL"]
jobs = App()  # JOBWIRE_URL


@jobs.task(queue="shipping", attempts=5)
async def ship(order_id: int, express: bool = False) -> str:
    """Its writes are committed with the end of the job, so that no order is shipped twice."""
    db = await current_job().transaction()
    label = f"{'EXPRESS' if express else 'PARCEL'}-{order_id}"
    await db.execute("update orders set label = %s where id = %s", [label, order_id])
    return label


@asynccontextmanager
async def lifespan(web: FastAPI) -> AsyncIterator[None]:
    async with jobs:  # connects now, so that a missing store is noticed at the start
        yield


web = FastAPI(lifespan=lifespan)


async def open_database() -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(DATABASE_URL, autocommit=True) as connection:
        yield connection


Database = Annotated[psycopg.AsyncConnection[Any], Depends(open_database)]


@web.post("/orders", status_code=201)
async def order(item: str, pieces: int, db: Database) -> dict[str, Any]:
    async with db.transaction():
        cursor = await db.execute("insert into orders (item, pieces) values (%s, %s) returning id", [item, pieces])
        [order_id] = await cursor.fetchone() or [0]
        job = await ship.options(transaction=db).add(order_id=order_id)
        if pieces > 100:  # found out too late: both the row and the job are rolled back
            raise HTTPException(409, "not in stock")
    return {"order": order_id, "job": job.id}


@web.get("/orders/{order_id}")
async def show(order_id: int, db: Database) -> dict[str, Any]:
    cursor = await db.execute("select item, label from orders where id = %s", [order_id])
    found = await cursor.fetchone()
    if found is None:
        raise HTTPException(404)
    return {"item": found[0], "label": found[1]}


if __name__ == "__main__":
    import asyncio

    asyncio.run(jobs.worker(concurrency=10).run())
