"""A blocking connection to a database with a pg-boss schema."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jobwire.backends.pgboss.connection.schema import Layout, bare, check_columns, check_version, identifier
from jobwire.backends.pgboss.connection.statements import source, statement
from jobwire.errors import StoreRefused
from jobwire.pipeline.stores.postgresio import database as postgresio
from jobwire.urls import Address

OLDEST_SERVER = 14
"""A row's fingerprint is `hash_record_extended`, which came with PostgreSQL 14."""


@cache
def sql(name: str) -> str:
    """Returns the text of a file under sql/, without its comments."""
    text = files("jobwire.pipeline.stores.pgboss").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


class Database(postgresio.Database):
    """A connection to a database with a pg-boss schema."""

    def __init__(self, address: Address) -> None:
        super().__init__(address.driver_url, f"PostgreSQL at {address.redacted}")
        try:
            self.layout = self._detect(address.options.get("schema", "pgboss"))
        except BaseException:
            self.close()
            raise

    def fitted(self, name: str, **parts: str) -> str:
        """Returns a statement of sql/ for this schema, with the parts that the caller has made."""
        layout = self.layout
        return sql(name).format(schema=layout.schema, side=layout.side, now=layout.now, **parts)

    def _detect(self, name: str) -> Layout:
        if self._connection.info.server_version < OLDEST_SERVER * 10_000:
            shown = self._connection.info.server_version // 10_000
            raise StoreRefused(f"{self.where} is PostgreSQL {shown}; the pipeline needs {OLDEST_SERVER} or newer")
        detect = statement("detect", source("detect")).text.decode()
        columns = {table: frozenset(names) for table, names in self.ask(detect, [bare(name)])}
        if "version" not in columns:
            raise StoreRefused(f"{self.where} has no schema {name} of pg-boss")
        has_clock = columns.pop("job_now()", None) is not None
        versions = self.ask(f"SELECT version FROM {identifier(name)}.version")  # noqa: S608 a checked name
        if not versions:
            raise StoreRefused(f"{self.where} has no schema {name} of pg-boss: it is being made")
        version = int(versions[0][0])
        check_version(name, version)
        check_columns(name, version, columns)
        return Layout(name, version, columns, has_clock)
