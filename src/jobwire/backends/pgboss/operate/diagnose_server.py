"""Settings and states of a PostgreSQL server that lose or delay jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobwire.backends.pgboss.connection.pipelined import CALL_WITHIN, Value
from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.schema import bare, side_name
from jobwire.backends.pgboss.connection.statements import source, statement
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import number, text
from jobwire.boundary import Check, Finding, FindingKind, Severity, Thresholds
from jobwire.boundary.finding_kinds import CONNECTIONS, REPLICA, REPLICA_LAG

DURABILITY = FindingKind(
    "durability",
    Severity.CRITICAL,
    "the server does not wait for its disk",
    "a crash of the server loses jobs that were added and outcomes that were confirmed",
    "set fsync, full_page_writes and synchronous_commit to on in postgresql.conf, then SELECT pg_reload_conf()",
)
STATEMENT_TIMEOUT = FindingKind(
    "statement-timeout",
    Severity.WARNING,
    "statements are cancelled before a claim is given up",
    "under load, claims and settles are cancelled by the server, and their jobs are late or run again",
    "give the account of the workers more time",
)
READ_ONLY = FindingKind(
    "read-only",
    Severity.CRITICAL,
    "transactions of this account are read-only",
    "no job can be added or settled",
    "ALTER ROLE … SET default_transaction_read_only TO off",
)
AUTOVACUUM = FindingKind(
    "autovacuum",
    Severity.WARNING,
    "autovacuum is off",
    "dead rows pile up with each job, and every claim becomes slower",
    "set autovacuum and track_counts to on in postgresql.conf, then SELECT pg_reload_conf()",
)
DEAD_ROWS = FindingKind(
    "dead-rows",
    Severity.WARNING,
    "vacuum is behind",
    "claims read over dead rows and become slower, and the table grows on disk",
    "VACUUM (ANALYZE) the table, and let autovacuum come earlier",
)
OPEN_TRANSACTION = FindingKind(
    "open-transaction",
    Severity.WARNING,
    "a transaction has been open and idle for long",
    "it keeps its locks, and vacuum can't remove rows that died after it began",
    "end the session",
)
UNUSED_SLOT = FindingKind(
    "unused-slot",
    Severity.WARNING,
    "no standby uses a replication slot",
    "the server keeps the log for it until the disk is full, and then stops",
    "drop the slot if its standby is gone",
)
WRAPAROUND = FindingKind(
    "wraparound",
    Severity.CRITICAL,
    "the database runs out of transaction numbers",
    "at 2,100 million the server refuses all writes",
    "end old transactions and drop unused slots, then VACUUM FREEZE",
)
_DURABLE = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "local", "remote_write", "remote_apply"),
}
_TIMEOUTS = ("statement_timeout", "transaction_timeout", "lock_timeout")
_SLOT_BYTES = 2**30
_SHARE_OF_DEAD = 0.2


class PgServerChecks:
    """The checks of one server, as the account of the URL sees it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def ask(self, name: str, values: Mapping[str, Value] | None = None) -> list[Row]:
        """Runs a statement that reads the catalog only."""
        [rows] = await self._store.run([(statement(name, source(name)), values or {})])
        return rows

    def checks(self, thresholds: Thresholds) -> list[Check]:
        async def connections() -> Sequence[Finding]:
            return await self._connections(thresholds.connections)

        async def transactions() -> Sequence[Finding]:
            return await self._transactions(thresholds.open_transaction)

        async def replication() -> Sequence[Finding]:
            return await self._replication(thresholds.replica_lag)

        async def vacuum() -> Sequence[Finding]:
            return await self._vacuum(thresholds.dead_rows, thresholds.transaction_age)

        return [
            Check("settings", self._settings),
            Check("connections", connections),
            Check("open transactions", transactions),
            Check("replication", replication),
            Check("vacuum", vacuum),
        ]

    async def _settings(self) -> Sequence[Finding]:
        rows = {name: (setting, unit, where) for name, setting, unit, where in await self.ask("diagnose_settings")}
        found: list[Finding] = []
        weak = [f"{name} is {rows[name][0]}" for name, good in _DURABLE.items() if rows[name][0] not in good]
        if weak:
            only_commit = weak[0].startswith("synchronous_commit")
            found.append(DURABILITY.found(", ".join(weak), severity=Severity.WARNING if only_commit else None))
        for name in _TIMEOUTS:
            setting, _, where = rows.get(name, ("0", "ms", ""))
            if 0 < int(setting) < CALL_WITHIN * 1000:
                evidence = f"{name} is {int(setting) / 1000:g} s (set by {where}); jobwire waits {CALL_WITHIN:g} s"
                remedy = f"ALTER ROLE … SET {name} TO '30s', or 0 for no limit"
                found.append(STATEMENT_TIMEOUT.found(evidence, remedy=remedy))
        if rows["default_transaction_read_only"][0] == "on":
            where = rows["default_transaction_read_only"][2]
            found.append(READ_ONLY.found(f"default_transaction_read_only is on (set by {where})"))
        off = [f"{name} is off" for name in ("autovacuum", "track_counts") if rows[name][0] == "off"]
        return [*found, *([AUTOVACUUM.found(", ".join(off))] if off else [])]

    async def _connections(self, share: float) -> Sequence[Finding]:
        [(used, most, roles, by_role, databases, in_database)] = await self.ask("diagnose_connections")
        limits = [
            (used, most, "of the server", "max_connections in postgresql.conf"),
            (by_role, roles, "of this role", "ALTER ROLE … CONNECTION LIMIT"),
            (in_database, databases, "of this database", "ALTER DATABASE … CONNECTION LIMIT"),
        ]
        return [
            CONNECTIONS.found(
                f"{count:,} of {limit:,} connections {whose} are in use",
                remedy=f"close idle clients, use a pooler such as PgBouncer, or raise {setting}",
            )
            for count, limit, whose, setting in limits
            if limit is not None and limit > 0 and count >= share * limit
        ]

    async def _transactions(self, age: float) -> Sequence[Finding]:
        rows = await self.ask("diagnose_transactions", {"age": number(age)})
        return [
            OPEN_TRANSACTION.found(
                f"session {pid} of {user} ({program}) has been idle in its transaction for {idle:,.0f} s",
                remedy=f"SELECT pg_terminate_backend({pid}), and commit or roll back in that program",
            )
            for pid, user, program, idle in rows
        ]

    async def _replication(self, lag: float) -> Sequence[Finding]:
        [(_, _, standby)] = await self.ask("diagnose_server")
        if standby:
            return [REPLICA.found("pg_is_in_recovery() is true")]
        found: list[Finding] = []
        for kind, name, value, state in await self.ask("diagnose_replication"):
            if kind == "standby" and value >= lag:
                found.append(REPLICA_LAG.found(f"standby {name} ({state}) has not applied the last {value:,.0f} s"))
            if kind == "slot":
                severity = None if value >= _SLOT_BYTES else Severity.NOTE
                evidence = f"{state} slot {name} is unused and keeps {value / 2**20:,.0f} MiB of the log"
                remedy = f"SELECT pg_drop_replication_slot('{name}') if its standby is gone"
                found.append(UNUSED_SLOT.found(evidence, severity=severity, remedy=remedy))
        return found

    async def _vacuum(self, most: int, oldest: int) -> Sequence[Finding]:
        names = {"schema": text(bare(self._store.name)), "side": text(bare(side_name(self._store.name)))}
        found: list[Finding] = []
        for table, live, dead, last, left_out in await self.ask("diagnose_vacuum", names):
            if left_out:
                evidence = f"table {table} has autovacuum_enabled=off; it has {dead:,} dead rows"
                found.append(AUTOVACUUM.found(evidence, remedy=f"ALTER TABLE {table} RESET (autovacuum_enabled)"))
            if dead >= most and dead >= _SHARE_OF_DEAD * (live + dead):
                evidence = (
                    f"table {table} has {dead:,} dead rows and {live:,} live ones; last vacuum: {last or 'never'}"
                )
                remedy = f"VACUUM (ANALYZE) {table}; ALTER TABLE {table} SET (autovacuum_vacuum_scale_factor = 0.02)"
                found.append(DEAD_ROWS.found(evidence, remedy=remedy))
        [(age,)] = await self.ask("diagnose_wraparound")
        if age >= oldest:
            found.append(WRAPAROUND.found(f"the oldest transaction number is {age:,} transactions old"))
        return found
