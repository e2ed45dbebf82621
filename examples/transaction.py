"""A row and its job are committed together, and so is what the job writes: python transaction.py

Needs PostgreSQL, with JOBWIRE_URL=pgboss+postgresql://… and the same database as DATABASE_URL=postgresql://…
"""

import asyncio
import os

import psycopg

from jobwire import ActiveJob, Queue, Worker

DATABASE_URL = os.environ["DATABASE_URL"]


async def ship(job: ActiveJob) -> str:
    db = await job.transaction()  # committed with the end of this job, rolled back if it fails
    await db.execute("update parcels set shipped = true where id = %s", [job.data["parcel"]])
    return f"parcel {job.data['parcel']}"


async def main() -> None:
    connecting = psycopg.AsyncConnection.connect(DATABASE_URL, autocommit=True)
    async with await connecting as db, Queue("parcels") as queue, Worker("parcels", ship, queue.connection):
        await db.execute("create table if not exists parcels (id int primary key, shipped boolean default false)")
        for parcel in (1, 2):
            try:
                async with db.transaction():
                    await db.execute("insert into parcels (id) values (%s)", [parcel])
                    job = await queue.add({"parcel": parcel}, transaction=db)
                    if parcel == 2:
                        raise ValueError("not in stock")
            except ValueError as error:
                print("rolled back:", error, await queue.get(job.id))
            else:
                print(await job.wait(timeout=30))
        print(await (await db.execute("select id, shipped from parcels")).fetchall())


if __name__ == "__main__":
    asyncio.run(main())
