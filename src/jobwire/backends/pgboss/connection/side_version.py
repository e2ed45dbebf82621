"""The version of the side data in `<schema>_jobwire`: the one row of its table `version`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from jobwire.backends.pgboss.connection.errors import (
    DUPLICATE_OBJECT,
    TAKES_NO_WRITES,
    UNDEFINED_TABLE,
    Refused,
    Unreachable,
)
from jobwire.backends.pgboss.connection.pipelined import Call
from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.schema import Layout, lock_key
from jobwire.backends.pgboss.connection.statements import source, statement
from jobwire.backends.side_version import FIRST

STEPS: Sequence[str] = ()
"""SQL statements that lead from one version to the next, each ended by a semicolon, with `{side}` for the schema. Each
step runs exactly once: it is in one transaction with the change of the version."""

Run = Callable[[Sequence[Call]], Coroutine[Any, Any, list[list[Row]]]]
RunScript = Callable[[str], Coroutine[Any, Any, None]]


class PgSideVersion:
    """Implements SideVersion. `sql/connection/side.sql` makes version 1. Later versions are made from it by steps, on a
    new database too."""

    def __init__(self, layout: Layout, where: str, run: Run, run_script: RunScript) -> None:
        self.where = f"schema {layout.side} of {where}"
        self._side = layout.side
        self._lock = lock_key("jobwire", layout.name, ".side")
        self._run = run
        self._run_script = run_script

    async def read(self) -> object:
        query = f"SELECT version FROM {self._side}.version"  # noqa: S608 - a checked name
        try:
            [found] = await self._run([(statement("side_version", query), {})])
        except Refused as error:
            if error.sqlstate != UNDEFINED_TABLE:
                raise
            return None
        return next((version for (version,) in found), None)

    async def make(self) -> None:
        """Makes the schema with its tables, of version 1. Does nothing if they exist."""
        await self._under_lock(source("side").format(side=self._side) + self._number())

    async def make_more(self, name: str) -> None:
        """Makes a table that only some workers need, by `sql/connection/<name>.sql`. It needs no version of its own:
        a release that does not know it does not touch it."""
        await self._under_lock(source(name).format(side=self._side))

    async def stamp(self) -> object:
        try:
            await self._under_lock(self._number())
        except Unreachable as error:
            if error.sqlstate not in TAKES_NO_WRITES:
                raise
            return FIRST  # a standby, or a full disk: reading works, and a later open writes the version
        return await self.read()

    async def advance(self, version: int, step: str) -> None:
        await self._under_lock(
            f"DO $side$ BEGIN\nIF EXISTS (SELECT FROM {self._side}.version WHERE version = {version}) THEN\n"
            f"{step.format(side=self._side)}\n"
            f"UPDATE {self._side}.version SET version = {version + 1};\nEND IF;\nEND $side$;"
        )

    def _number(self) -> str:
        return source("side_version").format(side=self._side, first=FIRST)

    async def _under_lock(self, script: str) -> None:
        """Runs the script while no other process does: IF NOT EXISTS fails when two sessions create at the same
        time."""
        wait = f"SET LOCAL lock_timeout TO '30s';\nSELECT pg_advisory_xact_lock({self._lock});\n"
        try:
            await self._run_script(wait + script)
        except Refused as error:
            # An earlier release of jobwire, which takes no lock, may have made them at the same time.
            if error.sqlstate not in DUPLICATE_OBJECT:
                raise
