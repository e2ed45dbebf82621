"""Each way in which a PostgreSQL server or a pg-boss schema is set up or left to lose or delay jobs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from awaiting import eventually
from jobwire import Queue, connect, embedded
from jobwire.backends.pgboss import Boss
from jobwire.doctor import Severity, examination, fix
from jobwire.embedded import binaries
from jobwire.embedded.privileges import before_exec, server_account

from .conftest import Break, finding, look

Session = psycopg.AsyncConnection[Any]


@pytest.fixture
async def stored(pgboss_url: str, session: Session) -> Session:
    """A session in a schema with a queue and a job, as jobwire made them."""
    async with Queue("emails", pgboss_url) as queue:
        await queue.add(1)
        await queue.admin.pause()
        await queue.admin.resume()
    return session


def does(*commands: str) -> Any:
    """Returns a way to break a store by commands. `{database}` stands for its name."""

    async def by(session: Session) -> None:
        for command in commands:
            await session.execute(command.format(database=session.info.dbname))

    return by


_NODE = (
    "INSERT INTO instance (id, host, pid, version, node_version, heartbeat_seconds, supervise, schedule, migrate,"
    " persist_queue_stats, persist_warnings) VALUES (gen_random_uuid(), 'h', 1, '{version}', '22', 60, false, false,"
    " false, false, false)"
)


def _node(version: str) -> str:
    return _NODE.replace("{version}", version)


@pytest.mark.parametrize(
    "how",
    [
        Break(
            "statement-timeout", does('ALTER DATABASE "{database}" SET statement_timeout TO \'2s\''), Severity.WARNING,
            "statement_timeout is 2 s (set by database); jobwire waits 15 s", "SET statement_timeout TO '30s'",
        ),
        Break(
            "statement-timeout", does('ALTER DATABASE "{database}" SET lock_timeout TO \'50ms\''), Severity.WARNING,
            "lock_timeout is 0.05 s", "SET lock_timeout", name="lock_timeout",
        ),
        Break(
            "read-only", does('ALTER DATABASE "{database}" SET default_transaction_read_only TO on'), Severity.CRITICAL,
            "default_transaction_read_only is on (set by database)", "TO off",
        ),
        Break(
            "autovacuum", does("ALTER TABLE job_common SET (autovacuum_enabled = off)"), Severity.WARNING,
            "table pgboss.job_common has autovacuum_enabled=off", "ALTER TABLE pgboss.job_common RESET",
        ),
        Break(
            "dead-rows",
            does(
                "ALTER TABLE job_common SET (autovacuum_enabled = off)",
                "UPDATE job SET priority = priority + 1",
                "UPDATE job SET priority = priority + 1",
                "SELECT pg_stat_force_next_flush()",
            ),
            Severity.WARNING, "table pgboss.job_common has 2 dead rows and 1 live",
            "VACUUM (ANALYZE) pgboss.job_common", limits={"dead_rows": 2},
        ),
        Break(
            "index-missing", does("DROP INDEX job_common_i11"), Severity.CRITICAL, "no index job_common_i11",
            'CREATE INDEX CONCURRENTLY job_common_i11 ON "pgboss"."job_common" (name, priority DESC',
        ),
        Break(
            "index-extra", does("CREATE INDEX tenant ON job_common ((data->>'tenant'))"), Severity.NOTE,
            "job_common also has tenant", 'DROP INDEX CONCURRENTLY "pgboss"."tenant"',
        ),
        Break(
            "index-invalid",
            does("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'job_common_i15'::regclass"),
            Severity.WARNING, "index job_common_i15 of job_common is invalid", "REINDEX INDEX CONCURRENTLY",
        ),
        Break(
            "schema-drift", does("ALTER TABLE queue DROP COLUMN ready_history"), Severity.WARNING,
            "version 46, and lacks queue.ready_history", "jobwire pgboss init",
        ),
        Break(
            "schema-drift", does("DROP TABLE warning"), Severity.WARNING, "lacks warning", "jobwire pgboss init",
            name="schema-drift of a table",
        ),
        Break(
            "schema-drift", does("DROP TABLE pgboss_jobwire.stall"), Severity.WARNING, "lacks stall", "--fix",
            fixable=True, name="schema-drift of side data",
        ),
        Break(
            "schema-drift",
            does(
                "INSERT INTO bam (name, version, status, table_name, command, error) "
                "VALUES ('i15', 46, 'failed', 'job_common', 'x', 'disk full')"
            ),
            Severity.WARNING, "could not change table job_common (i15): disk full", "restart Node",
            name="schema-drift of a failed change",
        ),
        Break(
            "store-refused", does("ALTER TABLE job DROP COLUMN retry_backoff"), Severity.CRITICAL,
            "job has no retry_backoff", "jobwire doctor again",
        ),
        Break(
            "untested-peer", does("UPDATE version SET version = 99"), Severity.WARNING, "has version 99",
            "upgrade jobwire",
        ),
        Break(
            "side-data-newer", does("UPDATE pgboss_jobwire.version SET version = 99"), Severity.CRITICAL, "version 99",
            "upgrade jobwire",
        ),
        Break(
            "mixed-versions", does(_node("12.1.0"), _node("12.38.0"), _node("12.38.0")), Severity.WARNING,
            "pg-boss 12.1.0 in 1 process, 12.38.0 in 2 processes", "one version",
        ),
        Break(
            "no-upkeep", does("UPDATE queue SET monitor_on = now() - interval '2 hours'"), Severity.WARNING,
            "1 queue was not monitored lately; emails was 120 min ago", "supervise=True",
        ),
        Break(
            "no-upkeep",
            does(
                "UPDATE job SET state = 'completed', completed_on = now() - interval '9 days', deletion_seconds = 60",
                "UPDATE queue SET monitor_on = now() - interval '2 hours'",
            ),
            Severity.WARNING, "emails was 120 min ago", "supervise=True", name="no-upkeep of finished jobs",
        ),
        Break(
            "schedules-stopped",
            does(
                "INSERT INTO schedule (name, cron) VALUES ('emails', '* * * * *')",
                "UPDATE version SET cron_on = now() - interval '1 hour'",
            ),
            Severity.WARNING, "1 schedule is stored, and the last pass over all schedules was 60 min ago",
            "schedule=True",
        ),
        Break(
            "unused-slot",
            does("SELECT pg_create_physical_replication_slot('{database}', true)"),
            Severity.NOTE, " is unused and keeps ", "pg_drop_replication_slot('test_",
        ),
    ],
    ids=str,
)  # fmt: skip
async def test_what_is_broken_is_found(pgboss_url: str, stored: Session, how: Break) -> None:
    try:
        await how.prove(pgboss_url, stored)
    finally:
        of_this_test = "SELECT slot_name FROM pg_replication_slots WHERE slot_name = current_database()"
        await stored.execute(f"SELECT pg_drop_replication_slot(slot_name) FROM ({of_this_test})")


async def test_a_queue_at_rest_needs_no_maintenance(pgboss_url: str, stored: Session) -> None:
    await stored.execute("UPDATE job SET state = 'completed', completed_on = now()")
    await stored.execute("UPDATE queue SET monitor_on = now() - interval '2 hours'")
    assert await finding(pgboss_url, "no-upkeep") is None


async def test_a_server_that_does_not_sync_is_found(pgboss_url: str, stored: Session) -> None:
    """The server of these tests is such a one."""
    found = await finding(pgboss_url, "durability")
    assert found is not None
    assert found.severity is Severity.CRITICAL
    assert found.evidence == "fsync is off, full_page_writes is off, synchronous_commit is off"
    assert "pg_reload_conf" in found.remedy


async def test_old_transaction_numbers_are_found(pgboss_url: str, stored: Session) -> None:
    assert await finding(pgboss_url, "wraparound") is None
    found = await finding(pgboss_url, "wraparound", transaction_age=1)
    assert found is not None
    assert found.severity is Severity.CRITICAL
    assert "VACUUM FREEZE" in found.remedy


@pytest.fixture
def primary(tmp_path: Path) -> Iterator[str]:
    """The URL of a server of its own: the databases that other tests make and drop would be copied, too."""
    with embedded.postgres(tmp_path, durable=False) as server:
        yield server.url


@pytest.mark.slow
async def test_a_standby_is_looked_at_from_both_sides(primary: str) -> None:
    url = f"pgboss+{primary}"
    async with Queue("emails", url) as queue:
        await queue.add(1)
    with TemporaryDirectory() as folder, standby_of(primary, Path(folder)) as port:
        async with await psycopg.AsyncConnection.connect(primary, autocommit=True) as session:

            async def applies() -> bool:
                rows = await (await session.execute("SELECT state FROM pg_stat_replication")).fetchall()
                return rows == [("streaming",)]

            await eventually(applies, within=60)
            assert await finding(url, "replica-lag", replica_lag=10) is None
            address = urlsplit(primary)
            moved = address._replace(netloc=f"{address.netloc.rpartition(':')[0]}:{port}").geturl()
            found = await finding(f"pgboss+{moved}", "replica")
            assert found is not None
            assert found.severity is Severity.CRITICAL
            async with await psycopg.AsyncConnection.connect(moved, autocommit=True) as standby:
                await standby.execute("SELECT pg_wal_replay_pause()")

                async def lags() -> Any:
                    await session.execute("UPDATE pgboss.job SET priority = priority + 1")
                    return await finding(url, "replica-lag", replica_lag=0.2)

                found = await eventually(lags, within=60)
    assert found.severity is Severity.WARNING
    assert "standby " in found.evidence


@contextmanager
def standby_of(url: str, folder: Path) -> Iterator[int]:
    """Starts a standby of a server. Yields its port."""
    programs = Path(binaries.POSTGRES.find()).parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    account = server_account(folder)  # the server does not run as root
    if account is not None:
        os.chown(folder, account.uid, account.gid)
    # The folders above the programs may be root's alone.
    as_server = before_exec(account, None, (programs / "postgres", programs / "pg_basebackup", folder))
    copy = [
        programs / "pg_basebackup",
        "--dbname",
        url,
        "--pgdata",
        folder,
        "--write-recovery-conf",
        "--checkpoint=fast",
    ]
    subprocess.run(copy, check=True, capture_output=True, preexec_fn=as_server)
    settings = (
        f"port={port}",
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "max_connections=200",
        "fsync=off",
    )
    options = [part for setting in settings for part in ("-c", setting)]
    command = [programs / "postgres", "-D", folder, *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=as_server)  # noqa: PLW1509 - the program has no other thread that matters
    try:
        yield port
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait()


async def test_a_transaction_that_is_left_open_is_found(pgboss_url: str, own_database: str, stored: Session) -> None:
    assert await finding(pgboss_url, "open-transaction", open_transaction=0) is None
    async with await psycopg.AsyncConnection.connect(own_database, application_name="forgotten") as idle:
        await idle.execute("SELECT 1")
        found = await finding(pgboss_url, "open-transaction", open_transaction=0)
        pid = idle.info.backend_pid
    assert found is not None
    assert f"session {pid} of jobwire (forgotten)" in found.evidence
    assert f"pg_terminate_backend({pid})" in found.remedy


async def test_a_flood_of_connections_is_found(pgboss_url: str, own_database: str, stored: Session) -> None:
    await stored.execute(f'ALTER DATABASE "{stored.info.dbname}" CONNECTION LIMIT 20')
    assert await finding(pgboss_url, "connections") is None
    async with AsyncExitStack() as idle:
        for _ in range(15):
            await idle.enter_async_context(await psycopg.AsyncConnection.connect(own_database))
        found = await finding(pgboss_url, "connections")
    assert found is not None
    assert "of 20 connections of this database are in use" in found.evidence
    assert "PgBouncer" in found.remedy


async def test_jobs_that_wait_for_jobs_that_are_gone_are_found(pgboss_url: str, stored: Session) -> None:
    await stored.execute("UPDATE job SET blocked = true, pending_dependencies = 1")
    [(job_id,)] = await (await stored.execute("SELECT id FROM job")).fetchall()
    found = await finding(pgboss_url, "blocked")
    assert found is not None
    assert (found.severity, found.queue) == (Severity.WARNING, "emails")
    assert str(job_id) in found.evidence
    assert f"jobwire remove emails {job_id}" in found.remedy


async def test_a_queue_with_a_table_of_its_own_is_looked_at(pgboss_url: str, stored: Session) -> None:
    async with connect(pgboss_url) as connection:
        await Boss(connection).create_queue("large", partition=True)
    before = (await look(pgboss_url)).findings
    assert "index-missing" not in [one.code for one in before]
    assert "index-extra" not in [one.code for one in before]
    [(table,)] = await (await stored.execute("SELECT table_name FROM queue WHERE name = 'large'")).fetchall()
    await stored.execute(f"DROP INDEX {table}_i11")
    found = await finding(pgboss_url, "index-missing")
    assert found is not None
    assert found.evidence == f"table {table} has no index {table}_i11"
    await stored.execute(found.remedy)
    assert await finding(pgboss_url, "index-missing") is None


async def test_what_the_account_may_not_see_is_a_note(pgboss_url: str, unique: str, stored: Session) -> None:
    await stored.execute(f"CREATE ROLE {unique}_r LOGIN PASSWORD 'x'")
    try:
        host = pgboss_url.rpartition("@")[2]
        seen = await look(f"pgboss+postgresql://{unique}_r:x@{host}")
    finally:
        await stored.execute(f"DROP ROLE {unique}_r")
    assert [one.code for one in seen.findings] == ["store-refused"]
    assert "permission denied" in seen.findings[0].evidence


async def test_a_fix_of_something_else_does_nothing(pgboss_url: str, stored: Session) -> None:
    assert await fix(connect(pgboss_url), (await look(pgboss_url)).findings) == []


async def test_a_check_that_takes_too_long_is_a_note(
    pgboss_url: str, own_database: str, stored: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "CHECK_WITHIN", 0.5)
    async with await psycopg.AsyncConnection.connect(own_database) as other:
        await other.execute("LOCK TABLE pgboss.job_common IN ACCESS EXCLUSIVE MODE")
        seen = await look(pgboss_url)
        await other.rollback()
    notes = [one for one in seen.findings if one.code == "not-examined"]
    assert ("emails", "queue emails: no answer within 0.5 s") in [(one.queue, one.evidence) for one in notes]
    assert await finding(pgboss_url, "not-examined") is None


async def test_only_so_many_queues_are_looked_at(
    pgboss_url: str, stored: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect(pgboss_url) as connection, Queue("reports", connection):
        assert await finding(pgboss_url, "many-queues") is None
        monkeypatch.setattr(examination, "MOST_QUEUES", 1)
        seen = await look(pgboss_url)
    assert seen.queues == ["emails"]
    [found] = [one for one in seen.findings if one.code == "many-queues"]
    assert (found.severity, found.evidence) == (Severity.NOTE, "1 of 2 queues were looked at")
