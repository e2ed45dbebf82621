"""pg-boss on PostgreSQL, with Node's worker beside ours. Handlers write rows that commit with their jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from faults.case import StoredJob
from faults.holders import holder_of
from faults.stores.store import Store
from jobwire import embedded
from jobwire.embedded import Server


class PgBoss(Store):
    """A schema of its own, and a table that handlers write to."""

    protocol = "pgboss"
    peer = Path(__file__).parents[1] / "peers" / "pgboss.mjs"
    peer_package = "pg-boss"
    peers_jobs_are_recovered = False

    @staticmethod
    def start(folder: Path) -> Server:
        return embedded.postgres(folder)

    def at(self, server: str) -> str:
        return f"pgboss+{server}?schema={self.place}"

    @contextmanager
    def client(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.server.url, autocommit=True) as client:
            yield client

    _transactions = False

    def prepare(self, *, transactions: bool) -> Mapping[str, Any]:
        self._transactions = transactions
        if not transactions:
            return {}
        with self.client() as client:
            client.execute(f"CREATE TABLE IF NOT EXISTS {self._written} (n bigint, token text)")
        return {"written": self._written}

    @property
    def _written(self) -> str:
        return f"public.{self.place}_written"

    def residue(self, jobs: Sequence[StoredJob]) -> list[str]:
        known = {job.id for job in jobs}
        with self.client() as client:
            found = [
                f"{row[0]} job {row[1]}"
                for row in client.execute(f"SELECT state::text, id::text FROM {self.place}.job")
                if row[1] not in known or row[0] in ("created", "retry", "active")
            ]
            for table in ("stall", "progress", "log"):
                rows = client.execute(f"SELECT id::text FROM {self.place}_jobwire.{table}").fetchall()
                found += [f"{table} of {row[0]}" for row in rows if row[0] not in known]
            stuck = client.execute(
                "SELECT state, query FROM pg_stat_activity WHERE state LIKE 'idle in transaction%%' AND query LIKE %s",
                [f"%{self.place}%"],
            )
            found += [f"{state}: {query[:80]}" for state, query in stuck]
            if self._transactions:
                found += self._wrongly_written(client, jobs)
        return found

    def _wrongly_written(self, client: psycopg.Connection[Any], jobs: Sequence[StoredJob]) -> list[str]:
        """Compares what handlers wrote with what was accepted: the two commit together. Node's workers write none."""
        there = Counter((n, token) for n, token in client.execute(f"SELECT n, token FROM {self._written}"))
        accepted = Counter(
            (job.n, job.token)
            for job in jobs
            if job.state == "completed" and job.n % 2 and not job.token.startswith("node")
        )
        return [f"job {n} is completed without its row of claim {token}" for n, token in (accepted - there)] + [
            f"a row of job {n} and claim {token}, which did not complete it, or twice"
            for n, token in (there - accepted)
        ]

    def connections(self) -> list[str]:
        with self.client() as client:
            rows = client.execute(
                "SELECT client_port, state, backend_start::text, query FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            return [
                f"{state} since {since}, last {query[:80]}: {holder_of(port)}" for port, state, since, query in rows
            ]

    def remove(self) -> None:
        with self.client() as client:
            client.execute(f"DROP TABLE IF EXISTS {self._written}")
            for schema in (self.place, f"{self.place}_jobwire"):
                client.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
