"""Makes pg-boss's schema on a database that has none, with SQL of our own. Node pg-boss 12.38 starts on it as on a
schema that it made itself."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobwire.backends.pgboss.connection.errors import DUPLICATE_OBJECT, Refused
from jobwire.backends.pgboss.connection.pipelined import PipelinedConnection
from jobwire.backends.pgboss.connection.schema import NEWEST, identifier, lock_key
from jobwire.backends.pgboss.connection.statements import source, statement
from jobwire.backends.pgboss.connection.values import text
from jobwire.urls import Address, parse

_LOOK = statement("look", "SELECT current_database(), to_regclass(:table) IS NOT NULL, now()")


def script(name: str, database: str, today: datetime) -> str:
    """Returns the SQL that makes the schema in one transaction, under the lock that every client takes for it."""
    schema = identifier(name)
    steps = [line.split(": ", 1) for line in source("job_table").splitlines() if not line.startswith("--")]
    commands = [(when, command.format(schema=schema)) for when, command in steps]
    policies = list(dict.fromkeys(when for when, _ in commands if when != "always"))
    common = ",\n".join(_literal(command) for when, command in commands if when == "always")
    branches = "\n".join(
        f"WHEN '{policy}' THEN ARRAY[" + ", ".join(_literal(c) for when, c in commands if when == policy) + "]"
        for policy in policies
    )
    functions = source("functions").format(
        schema=schema, common_steps=_indented(common, 8), policy_steps=_indented(branches, 8)
    )
    shared = ";\n".join(
        command.replace(f"{schema}.job ", f"{schema}.job_common ").replace(" job_i", " job_common_i")
        for _, command in commands
    )
    days = "\n".join(_day(schema, today + timedelta(days=days)) for days in (0, 1))
    return (
        "SET LOCAL lock_timeout TO '30s';\nSET LOCAL idle_in_transaction_session_timeout TO '30s';\n"
        f"SELECT pg_advisory_xact_lock({lock_key(database, name)});\n"
        f"{source('tables').format(schema=schema)}\n{functions}\n{shared};\n"
        f"ALTER TABLE {schema}.job ATTACH PARTITION {schema}.job_common DEFAULT;\n{days}\n"
        f"INSERT INTO {schema}.version (version) VALUES ({NEWEST});\n"
    )


async def install_on(connection: PipelinedConnection, name: str) -> bool:
    """Makes the schema unless it is there. Returns True if this call made it."""
    [[(database, there, now)]] = await connection.run([(_LOOK, {"table": text(f"{identifier(name)}.version")})])
    if there:
        return False
    try:
        await connection.script(script(name, database, now))
    except Refused as error:
        if error.sqlstate not in DUPLICATE_OBJECT:  # another client made it at the same moment
            raise
        return False
    return True


async def install(url: str) -> bool:
    """Makes pg-boss's schema in the database of a `pgboss+postgresql://…` URL. Returns False if it was there
    already."""
    address: Address = parse(url)
    if address.folder is not None:
        from jobwire.backends.pgboss.connection.store import Store  # noqa: PLC0415 - the store makes the schema by this module

        store = Store(address)
        await store.open()
        await store.close()
        return True
    name = address.options.get("schema", "pgboss")
    connection = await PipelinedConnection.connect(address.driver_url, f"PostgreSQL at {address.redacted}")
    try:
        return await install_on(connection, name)
    finally:
        connection.close()


def _day(schema: str, day: datetime) -> str:
    name, start, end = f"{day:%Y%m%d}", f"{day:%Y-%m-%d}", f"{day + timedelta(days=1):%Y-%m-%d}"
    return (
        f"CREATE TABLE {schema}.queue_stats_{name} PARTITION OF {schema}.queue_stats "
        f"FOR VALUES FROM ('{start} 00:00:00+00') TO ('{end} 00:00:00+00');"
    )


def _literal(command: str) -> str:
    return "'" + command.replace("'", "''") + "'"


def _indented(block: str, by: int) -> str:
    return "\n".join(" " * by + line for line in block.splitlines())
