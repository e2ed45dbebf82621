"""What tasks need, opened by the worker, and code around every task: python dependencies.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from jobwire import ActiveJob, App, Depends


class Database:
    def __init__(self) -> None:
        self.rows: list[str] = []


async def open_database() -> AsyncIterator[Database]:
    print("open")  # once per worker process
    yield Database()
    print("close")


async def log_runs(job: ActiveJob, call_next: Any) -> Any:
    result = await call_next(job)
    print(job.name, "returned", result)
    return result


app = App(middleware=[log_runs])


@app.task
async def store(row: str, database: Database = Depends(open_database, scope="process")) -> int:
    database.rows.append(row)
    return len(database.rows)


async def main() -> None:
    async with app, app.worker():
        for row in ("a", "b"):
            await (await store.add(row)).wait(timeout=30)  # the dependency is not an argument of the call


if __name__ == "__main__":
    asyncio.run(main())
