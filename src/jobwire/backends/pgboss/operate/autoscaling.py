"""The query by which an autoscaler counts the jobs of a queue.

It counts those that run, and those that are due and not blocked by other jobs. Delayed jobs count from the moment that
they are due. Waiting jobs of a paused queue do not count, if the user may read the schema of jobwire's side data. A
queue with a schedule counts as one job if there may be no worker, since only a worker adds the jobs of schedules.

Before version 12 pg-boss has no column `blocked`. The query then takes it from the row beside the jobs.
"""

from __future__ import annotations

from jobwire.backends.autoscaling import Scaling, Trigger, unreachable
from jobwire.backends.pgboss.address import parameters
from jobwire.backends.pgboss.connection.schema import identifier, side_name
from jobwire.errors import InvalidOption
from jobwire.urls import Address

_SECRET = {"password": "the password"}


def scaling(address: Address, queue: str, *, from_zero: bool) -> Scaling:
    given = parameters(address.driver_url)
    host, user = given.get("host", ""), given.get("user", "")
    if not host or host.startswith(("/", "@")) or "," in host:
        raise unreachable(address)
    if not user:
        raise InvalidOption("url", address.redacted, "must name the user that the autoscaler connects as")
    metadata = {
        "host": host,
        "port": str(given.get("port", 5432)),
        "userName": user,
        "dbName": given.get("dbname") or user,
        "sslmode": given.get("sslmode", "prefer"),
        "query": query(address.options.get("schema", "pgboss"), queue, from_zero=from_zero),
    }
    return Scaling((Trigger("jobs", "postgresql", metadata, "targetQueryValue", ("password",)),), secrets=_SECRET)


def query(schema: str, queue: str, *, from_zero: bool) -> str:
    """Returns a statement whose result is one number. KEDA passes no parameters, so the names are quoted in it."""
    place, name = identifier(schema), _literal(queue)
    # ruff: noqa: S608 - the names are quoted above
    jobs = (
        f"SELECT count(*) FROM {place}.job WHERE name = {name} AND state IN ('created', 'retry', 'active')"
        f" AND (state = 'active' OR (start_after <= now() AND NOT blocked AND NOT {_paused(schema, name)}))"
    )
    schedules = f" + (SELECT least(count(*), 1) FROM {place}.schedule WHERE name = {name})" if from_zero else ""
    return f"SELECT ({jobs}){schedules} FROM (SELECT false AS blocked) AS default_values"


def _paused(schema: str, name: str) -> str:
    """Returns an expression that is true if the queue is paused. The table of pauses is made with the first one, and
    the autoscaler's user may have no right to read it, so it can't be named in the statement itself. `ts_stat` is the
    one function of every PostgreSQL that runs a query given as text."""
    side = identifier(side_name(schema))
    pauses = f"SELECT 'paused'::tsvector FROM {side}.held WHERE name = {name}"
    readable = "has_schema_privilege(held.relnamespace, 'USAGE') AND has_table_privilege(held.oid, 'SELECT')"
    return (
        f"(SELECT count(*) > 0 FROM pg_class AS held, ts_stat(CASE WHEN {readable} THEN {_literal(pauses)} END)"
        f" WHERE held.relname = 'held' AND held.relnamespace ="
        f" (SELECT oid FROM pg_namespace WHERE nspname = {_literal(side[1:-1])}))"
    )


def _literal(text: str) -> str:
    return "'{}'".format(text.replace("'", "''"))
