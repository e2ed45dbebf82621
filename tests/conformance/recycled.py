"""Schemas and databases that tests take in turn: to make one takes longer than most tests do, to empty it does not."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
from pymongo import MongoClient

_EMPTY = """DO $$ DECLARE one text; BEGIN
    FOR one IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
        WHERE schemaname IN ('{schema}', '{schema}_jobwire') AND tablename <> 'version'
    LOOP EXECUTE 'DELETE FROM ' || one; END LOOP;
    UPDATE "{schema}".version SET cron_on = NULL, bam_on = NULL, flow_on = NULL, reindex_on = NULL,
        monitor_backoff_on = NULL;
END $$"""
_TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = %s"


def new_name() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


class Schemas:
    """Schemas of pg-boss. One with more tables than it was made with, or whose rows are locked, is not used again."""

    def __init__(self, server: str) -> None:
        # The role skips foreign keys, so that tables can be emptied in any order.
        options = "-c session_replication_role=replica -c lock_timeout=5s"
        self._database = psycopg.connect(server, autocommit=True, options=options)
        self._free: list[str] = []
        self._tables: int | None = None

    def take(self) -> str:
        return self._free.pop() if self._free else new_name()

    def give_back(self, schema: str) -> None:
        found = self._database.execute(_TABLES, [schema]).fetchone()
        tables = found[0] if found else 0
        self._tables = self._tables or tables
        if not tables or tables != self._tables:
            return
        try:
            self._database.execute(_EMPTY.format(schema=schema))
        except psycopg.errors.LockNotAvailable:
            return
        self._free.append(schema)

    def close(self) -> None:
        self._database.close()


class Databases:
    """Databases of Monque, with the indexes of its collections."""

    def __init__(self, server: str) -> None:
        self._client: MongoClient[dict[str, Any]] = MongoClient(server)
        self._free: list[str] = []

    def take(self) -> str:
        return self._free.pop() if self._free else new_name()

    def give_back(self, name: str) -> None:
        database = self._client[name]
        for collection in database.list_collection_names():
            database[collection].delete_many({})
        self._free.append(name)

    def drop(self, name: str) -> None:
        self._client.drop_database(name)

    def close(self) -> None:
        while self._free:
            self.drop(self._free.pop())
        self._client.close()
