"""pg-boss queues on PostgreSQL, for the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.pipeline.stores.pgboss.database import Database
from jobwire.pipeline.stores.pgboss.store import PgBossStore
from jobwire.urls import Address


def open_store(address: Address, queue: str, name: str) -> PgBossStore:
    return PgBossStore(Database(address), queue, name)


def list_queues(address: Address) -> Sequence[str]:
    database = Database(address)
    try:
        return [str(name) for (name,) in database.ask(database.fitted("queues"))]
    finally:
        database.close()
