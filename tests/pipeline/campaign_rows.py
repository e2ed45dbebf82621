"""A campaigns' database whose rows a test knows: those in FIRST were sent or failed, those in LATER wait for it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from jobwire.campaigns import connect, init

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MANY = 2_500
"""Messages of a cancelled campaign, which wait without end: enough for several partitions."""


def at(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


@dataclass(frozen=True)
class Sent:
    """A row of `jobs` that is settled, at once or after the first ingest."""

    id: str
    campaign: str
    channel: str
    moment: datetime
    attempts: int = 1
    error: str | None = None
    reason: str | None = None

    @property
    def status(self) -> str:
        return "SENT" if self.error is None else "FAILED"

    @property
    def ends(self) -> tuple[datetime | None, datetime | None]:
        return (self.moment, None) if self.error is None else (None, self.moment)


FORBIDDEN = "CHAT_WRITE_FORBIDDEN"
FIRST = [
    *(Sent(f"a{number}", "spring", f"c{number}", at(0.2 * number)) for number in range(4)),
    Sent("a4", "spring", "delta", at(3), 4, "CHAT_WRITE_FORBIDDEN: Telegram: you can't write there", FORBIDDEN),
    Sent("a5", "spring", "bravo", at(4), 3, "user 17 is gone"),
    Sent("a6", "autumn", "delta", at(70), 1, "403: CHAT_WRITE_FORBIDDEN (caused by SendMessage)", FORBIDDEN),
    Sent("a7", "trial", "delta", at(80), 2),
]
NOW = datetime.now(UTC).replace(second=0, microsecond=0)
LATER = [
    Sent("b0", "autumn", "c0", NOW, 2),
    Sent("b1", "autumn", "c1", NOW, 1, "TIMEOUT: no answer", "TIMEOUT"),
    Sent("b2", "autumn", "bravo", NOW),
]
"""A second ingest finds what is new by its time, so the time is that of the test."""
CLASSES = {"user 17 is gone": "user # is gone"}
"""The causes of errors without a code."""
RATES = {"spring": 3, "autumn": 5, "trial": 60, "queue's": 20}
HEALTH = {
    "c0": (True, 0),
    "c1": (True, 1),
    "c2": (True, 0),
    "c3": (True, 0),
    "bravo": (True, 0),
    "delta": (False, 5),
    "quiet": (True, 0),
}
"""Channels: whether they are active, and their errors."""
EVERYTHING = MANY + len(FIRST) + len(LATER) + 2


@dataclass(frozen=True)
class Tables:
    """A schema with the campaign tables, and an open connection to it."""

    url: str
    schema: str
    connection: psycopg.Connection[Any]

    def run(self, query: str, values: Sequence[Any] | None = None) -> None:
        self.connection.execute(query, values)  # pyright: ignore[reportArgumentType] texts of this module

    def settle(self, rows: Sequence[Sent]) -> None:
        for one in rows:
            self.run(
                "UPDATE jobs SET status = %s, attempts = %s, error_message = %s, started_at = %s, sent_at = %s, "
                "failed_at = %s WHERE id = %s",
                [one.status, one.attempts, one.error, one.moment, *one.ends, one.id],
            )


@contextmanager
def campaign_database(server: str) -> Iterator[Tables]:
    """Makes a schema of the test's own and fills it."""
    schema = f"campaigns_{uuid.uuid4().hex[:8]}"

    async def make() -> None:
        async with await connect(server) as connection:
            await init(connection, schema=schema)

    asyncio.run(make())
    with psycopg.connect(server, autocommit=True, options=f"-csearch_path={schema}") as connection:
        tables = Tables(f"{server}{'&' if '?' in server else '?'}schema={schema}", schema, connection)
        _fill(tables.run)
        tables.settle(FIRST)
        yield tables
        tables.run("SET client_min_messages TO warning")
        tables.run(f"DROP SCHEMA {schema} CASCADE")


def _fill(run: Any) -> None:
    run("INSERT INTO users (id, username) VALUES ('u', 'ann')")
    run("INSERT INTO batches (id, name) VALUES ('b', 'news')")
    run("INSERT INTO templates (id, name, content) VALUES ('t', 'hello', 'Hello')")
    for name, rate in RATES.items():
        run(
            "INSERT INTO campaigns (id, name, batch_id, template_id, params, mode, delivery_rate, status, "
            "created_by_id) VALUES (%s, %s, 'b', 't', '{\"x\": \"ä\"}', %s, %s, 'RUNNING', 'u')",
            [name, f"the {name}", "TEST" if name == "trial" else "LIVE", rate],
        )
    for name, (active, errors) in HEALTH.items():
        run(
            "INSERT INTO channels (id, username, category, is_active, error_count) VALUES (%s, %s, 'a, \"b\"', %s, %s)",
            [name, f"@{name}xx", active, errors],
        )
    run("SET session_replication_role = replica")  # rows that refer to nothing exist in adopted tables
    job = "INSERT INTO jobs (id, campaign_id, channel_id, created_at, status, sent_at) VALUES (%s, %s, %s, %s, %s, %s)"
    for one in (*FIRST, *LATER):
        run(job, [one.id, one.campaign, one.channel, NOON - timedelta(hours=1), "QUEUED", None])
    run(job, ["z1", "gone", "gone", NOON, "QUEUED", None])
    run(job, ["z2", "trial", "quiet", None, "SENT", "infinity"])
    run(
        "INSERT INTO jobs (id, campaign_id, channel_id, created_at) "
        "SELECT 'm''' || md5(n::text), 'queue''s', 'c' || n, %s FROM generate_series(1, %s) n",
        [NOON, MANY],
    )
    run("SET session_replication_role = DEFAULT")
    run("UPDATE campaigns SET status = 'CANCELLED', updated_at = %s WHERE id = 'queue''s'", [NOON])
