"""`jobwire pgboss …`: commands that only pg-boss needs."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from jobwire.cli.groups import Commands
from jobwire.cli.parameters import StoreName, examples

app = Commands(name="pgboss", help="Manage a database of pg-boss.", no_args_is_help=True)

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="The database, such as pgboss+postgresql://host/name?schema=pgboss. Without it: JOBWIRE_URL.",
        show_default=False,
    ),
]


@app.callback()
def group() -> None: ...


@app.command(
    epilog=examples("jobwire pgboss init --url pgboss+postgresql://host/name", "jobwire pgboss init --store prod")
)
def init(url: Url = None, store: StoreName = None) -> None:
    """Create pg-boss's schema in an empty database. Node pg-boss 12.38 then starts on it without a migration."""
    from jobwire import urls
    from jobwire.backends.pgboss.connection.schema import NEWEST
    from jobwire.backends.pgboss.connection.schema_install import install
    from jobwire.cli.profiles import located
    from jobwire.errors import InvalidOption

    where = located(url, store) or urls.default_url()
    address = urls.parse(where)
    if address.protocol != "pgboss":
        raise InvalidOption("url", address.redacted, "must name a PostgreSQL database: pgboss+postgresql://host/name")
    made = asyncio.run(install(where))
    name = address.options.get("schema", "pgboss")
    typer.echo(
        f"made schema {name}, version {NEWEST}" if made else f"schema {name} is there already; nothing was changed"
    )
