"""Tables of pg-boss and jobwire that are not as they should be, and upkeep that is not done."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from jobwire.backends.pgboss.connection import side_version
from jobwire.backends.pgboss.connection.schema import NEWEST, bare, identifier, side_name
from jobwire.backends.pgboss.connection.statements import source
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import number, text, text_list
from jobwire.backends.pgboss.operate.diagnose_server import PgServerChecks
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.side_version import bring_up_to_date, findings
from jobwire.boundary import Check, Finding, FindingKind, Severity, Thresholds
from jobwire.boundary.finding_kinds import (
    INDEX_EXTRA,
    INDEX_MISSING,
    MIXED_VERSIONS,
    SCHEDULES_STOPPED,
    SIDE_OLDER,
    STORE_EMPTY,
    UNTESTED_PEER,
)
from jobwire.counted import counted, few

SCHEMA_DRIFT = FindingKind(
    "schema-drift",
    Severity.WARNING,
    "tables are not as their version has them",
    "statements of jobwire or of peers fail, or leave out what the missing part is for",
    "restore the missing part from a backup or from a new schema: jobwire pgboss init on an empty database shows it",
)
INDEX_INVALID = FindingKind(
    "index-invalid",
    Severity.WARNING,
    "an index was not built to its end",
    "it is written to and not read: claims are as slow as without it",
    "REINDEX INDEX CONCURRENTLY the index",
)
NO_UPKEEP = FindingKind(
    "no-upkeep",
    Severity.WARNING,
    "no process does the maintenance of queues",
    "jobs of dead workers are not recovered, and finished ones are not deleted",
    "start a worker with supervise=True, the default of jobwire and of Node",
)
BLOCKED = FindingKind(
    "blocked",
    Severity.WARNING,
    "jobs wait for jobs that are gone",
    "they are never run",
    "jobwire remove QUEUE ID, or add them again",
)
_COLUMN = re.compile(r"^    ([a-z_]+) [a-z{\[]", re.MULTILINE)
_TABLE = re.compile(r"CREATE TABLE \{schema\}\.(\w+) \((.*?)\n\)", re.DOTALL)
_INDEX = re.compile(r"^(\w+): CREATE (?:UNIQUE )?INDEX job_i(\d+) ON ")
_SIDE_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS \{side\}\.(\w+)")


@cache
def expected_columns() -> dict[str, frozenset[str]]:
    """Returns the tables of the newest schema with their columns."""
    return {name: frozenset(_COLUMN.findall(columns)) for name, columns in _TABLE.findall(source("tables"))}


@cache
def expected_indexes() -> list[tuple[str, int, str]]:
    """Returns the indexes of a table of jobs: the policy of queues that have it or "always", number, command."""
    found = [(_INDEX.match(line), line) for line in source("job_table").splitlines()]
    return [(match[1], int(match[2]), line.partition(": ")[2]) for match, line in found if match]


class PgDiagnosis:
    """Implements Diagnosis."""

    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues
        self._server = PgServerChecks(store)

    async def server(self) -> str:
        [(version, _, _)] = await self._server.ask("diagnose_server")
        if self._store.is_empty:
            return f"PostgreSQL {version}"
        return f"PostgreSQL {version}, schema {self._store.name} version {self._store.layout.version}"

    async def now(self) -> float:
        [(_, now, _)] = await self._server.ask("diagnose_server")
        return float(now)

    async def stalled(self, queue: str, limit: int) -> Sequence[str]:
        row = await self._queues.find(queue)
        if row is None:
            return []
        values = {"queue": text(queue), "limit": number(limit)}
        return [job_id for (job_id,) in await self._store.ask("diagnose_stalled", values, table=row.table)]

    def checks(self, queues: Sequence[str], thresholds: Thresholds) -> Sequence[Check]:
        async def upkeep() -> Sequence[Finding]:
            return await self._upkeep(thresholds.upkeep)

        async def schedules() -> Sequence[Finding]:
            return await self._schedules(max(thresholds.overdue, 120.0))

        async def blocked() -> Sequence[Finding]:
            return await self._blocked(queues)

        if self._store.is_empty:
            return [*self._server.checks(thresholds), Check("schema", self._no_schema)]
        return [
            *self._server.checks(thresholds),
            Check("schema", self._schema),
            Check("indexes", self._indexes),
            Check("side data", self._side),
            Check("versions of peers", self._versions),
            Check("maintenance", upkeep),
            Check("schedules", schedules),
            Check("blocked jobs", blocked),
        ]

    async def fix(self, finding: Finding) -> str:
        """Makes missing tables of side data, or brings side data up to date."""
        if finding.code not in (SCHEMA_DRIFT.code, SIDE_OLDER.code):
            return "nothing was done"
        side = self._store.side_version()
        await side.make()
        await bring_up_to_date(side, side_version.STEPS)
        return finding.fix

    # --- the checks -------------------------------------------------------------------------------------------------

    async def _no_schema(self) -> Sequence[Finding]:
        return [STORE_EMPTY.found(f"{self._store.where} has no schema {self._store.name}")]

    async def _schema(self) -> Sequence[Finding]:
        layout = self._store.layout
        if layout.is_newer:
            evidence = f"schema {layout.name} has version {layout.version}; jobwire was tested up to {NEWEST}"
            risk = "jobwire runs its jobs, and leaves maintenance and schedules to Node pg-boss"
            return [UNTESTED_PEER.found(evidence, risk=risk, remedy="pip install --upgrade jobwire")]
        found: list[Finding] = []
        if layout.version == NEWEST:
            # The layout has these tables only, and their columns as they were found.
            wanted = {name: columns for name, columns in expected_columns().items() if name != "job_common"}
            gone = [
                name if name not in layout.columns else f"{name}.{column}"
                for name, columns in wanted.items()
                for column in (
                    sorted(columns - layout.columns.get(name, frozenset())) if name in layout.columns else [""]
                )
            ]
            if gone:
                evidence = f"schema {layout.name} has version {NEWEST}, and lacks {', '.join(gone)}"
                found.append(SCHEMA_DRIFT.found(evidence))
        if layout.has("bam"):
            for name, table, error in await self._store.ask("diagnose_bam", {}):
                evidence = f"pg-boss could not change table {table} ({name}): {' '.join(error.split())[:200]}"
                remedy = "correct the cause, then restart Node pg-boss: it tries again"
                found.append(SCHEMA_DRIFT.found(evidence, remedy=remedy))
        return found

    async def _indexes(self) -> Sequence[Finding]:
        schema = self._store.layout.schema
        tables = {"job_common": "all"} | {
            table: policy for _, table, policy, own, *_ in await self._store.ask("diagnose_queues", {}) if own
        }
        values = {"schema": text(bare(self._store.name)), "tables": text_list(list(tables))}
        there = await self._server.ask("diagnose_indexes", values)
        found = [
            INDEX_INVALID.found(
                f"index {name} of {table} is invalid", remedy=f"REINDEX INDEX CONCURRENTLY {schema}.{name}"
            )
            for table, name, valid, _ in there
            if not valid
        ]
        if self._store.layout.version != NEWEST:
            return found
        for table, policy in tables.items():
            here = [(name, constraint) for owner, name, _, constraint in there if owner == table]
            found += _compared(schema, table, policy, here)
        return found

    async def _side(self) -> Sequence[Finding]:
        if not self._store.has_side:
            return []
        side = self._store.side_version()
        found = await findings(side, side_version.STEPS)
        names = {
            name
            for (name,) in await self._server.ask("diagnose_side", {"side": text(bare(side_name(self._store.name)))})
        }
        gone = sorted({*_SIDE_TABLE.findall(source("side")), "version"} - names)
        if gone and not found:
            evidence = f"{side.where} lacks {', '.join(gone)}"
            found.append(
                SCHEMA_DRIFT.found(evidence, remedy="jobwire doctor --fix", fix=f"create {', '.join(gone)}, empty")
            )
        return found

    async def _versions(self) -> Sequence[Finding]:
        if not self._store.layout.has("instance"):
            return []
        rows = await self._store.ask("diagnose_instances", {})
        if len(rows) < 2:
            return []
        used = ", ".join(f"{version} in {count} process{'es' if count > 1 else ''}" for version, count in rows)
        return [MIXED_VERSIONS.found(f"pg-boss {used}")]

    async def _upkeep(self, late: float) -> Sequence[Finding]:
        old: list[tuple[float, str]] = []
        for name, _, _, _, has_work, monitored in await self._store.ask("diagnose_queues", {}):
            if has_work and monitored is not None and monitored >= late:
                old.append((monitored, name))
        if not old:
            return []
        longest, name = max(old)
        neglected = counted(len(old), "queue", " was", " were")
        return [NO_UPKEEP.found(f"{neglected} not monitored lately; {name} was {longest / 60:,.0f} min ago")]

    async def _schedules(self, late: float) -> Sequence[Finding]:
        for count, passed, oldest in await self._store.ask("diagnose_cron", {}):
            since = oldest if passed is None else passed
            if count and since is not None and since >= late:
                last = "the last pass over all schedules was {:,.0f} min ago"
                last = "no pass over all schedules was ever made" if passed is None else last.format(passed / 60)
                stored = counted(count, "schedule", " is", " are")
                evidence = f"{stored} stored, and {last}"
                remedy = "start a worker with schedule=True, the default of jobwire and of Node"
                return [SCHEDULES_STOPPED.found(evidence, remedy=remedy)]
        return []

    async def _blocked(self, queues: Sequence[str]) -> Sequence[Finding]:
        found: list[Finding] = []
        if not (self._store.layout.has("blocked") and self._store.layout.has("job_dependency")):
            return found
        for queue in queues:
            row = await self._queues.find(queue)
            if row is None:
                continue
            ids = [
                job_id
                for (job_id,) in await self._store.ask("diagnose_blocked", {"queue": text(queue)}, table=row.table)
            ]
            if ids:
                evidence = f"jobs {few(ids)} are blocked by no job"
                found.append(
                    BLOCKED.found(evidence, queue=queue, remedy=f"jobwire remove {queue} {ids[0]}, or add it again")
                )
        return found


def _compared(schema: str, table: str, policy: str, there: Sequence[tuple[str, bool]]) -> list[Finding]:
    """Returns findings about indexes that a table lacks, and about those that pg-boss does not use. `there` has the
    name of each index, and whether a constraint owns it."""
    if not there:
        return []  # the table itself is missing, or this account may not see it
    known = {
        f"{table}_i{number}": command
        for wanted, number, command in expected_indexes()
        if wanted == "always" or policy in ("all", wanted)
    }
    found = [
        INDEX_MISSING.found(f"table {table} has no index {name}", remedy=_create(known[name], schema, table))
        for name in sorted(set(known) - {name for name, _ in there})
    ]
    extra = sorted(name for name, constraint in there if not constraint and name not in known)
    if extra:
        remedy = f"DROP INDEX CONCURRENTLY {schema}.{identifier(extra[0])}"
        found.append(INDEX_EXTRA.found(f"table {table} also has {few(extra)}", remedy=remedy))
    return found


def _create(command: str, schema: str, table: str) -> str:
    """Returns the command that makes an index of a table without blocking its jobs."""
    own = command.format(schema=schema).replace(f"{schema}.job ", f"{schema}.{identifier(table)} ")
    return own.replace(" job_i", f" {table}_i").replace("INDEX ", "INDEX CONCURRENTLY ", 1)
