"""The address of the database, and connections to it.

Any PostgreSQL URL will do, also one that Supabase shows for other programs: their parameters in it (`pgbouncer`,
`connection_limit`, `schema` and so on) are understood or left out, since the driver would refuse them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from jobwire import checks
from jobwire.errors import InvalidOption, StoreRefused, StoreUnavailable
from jobwire.redact import redact, redact_url

_SCHEMES = ("postgresql", "postgres")
_OF_OTHERS = ("pgbouncer", "connection_limit", "pool_timeout", "statement_cache_size", "schema", "supa")
_POOLER_PORT = 6543
_DEFAULTS: dict[str, Any] = {"connect_timeout": 10, "fallback_application_name": "jobwire campaigns"}
_ALWAYS: dict[str, Any] = {"client_encoding": "UTF8"}
_BY_THE_SERVER = ("authentication failed", "does not exist", "no password supplied", "pg_hba.conf")


@dataclass(frozen=True, slots=True, repr=False)
class DatabaseSettings:
    """A PostgreSQL URL as the driver takes it, and the schema of the tables."""

    url: str
    schema: str = "public"
    prepared: bool = True
    """False behind a pooler that gives each transaction another connection: statements can't be prepared there."""

    @classmethod
    def parse(cls, url: str, schema: str | None = None) -> DatabaseSettings:
        """Reads a URL. The schema is the one given, else the URL's `?schema=`, else `public`.

        >>> DatabaseSettings.parse("postgres://postgres.abc:pw@pooler.supabase.com:6543/postgres?pgbouncer=true")
        DatabaseSettings('postgres://postgres.abc:***@pooler.supabase.com:6543/postgres', schema='public')
        """
        given: Any = url
        if not isinstance(given, str):
            raise InvalidOption("url", type(given).__name__, "must be a string such as 'postgresql://localhost/app'")
        try:
            given.encode()
        except UnicodeEncodeError:
            raise InvalidOption("url", redact_url(given), "must be valid Unicode (it has a lone surrogate)") from None
        parts = urlsplit(given)
        if parts.scheme not in _SCHEMES:
            # A jobwire URL has the driver's URL after its protocol.
            own = given.partition("+")[2] if parts.scheme.partition("+")[2] in _SCHEMES else ""
            hint = f": write {redact_url(own.partition('?')[0])}" if own else ", such as postgresql://localhost/app"
            raise InvalidOption("url", redact_url(given), f"must be a plain PostgreSQL URL{hint}")
        options = parse_qsl(parts.query, keep_blank_values=True)
        named = dict(options)
        kept = urlencode([(key, value) for key, value in options if key not in _OF_OTHERS], quote_via=quote)
        try:
            port = parts.port
        except ValueError:
            port = None  # several hosts
        return cls(
            f"{parts.scheme}://{parts.netloc}{parts.path}" + (f"?{kept}" if kept else ""),
            check_schema(schema if schema is not None else named.get("schema", "public")),
            port != _POOLER_PORT and named.get("pgbouncer") != "true",
        )

    def __repr__(self) -> str:
        return f"DatabaseSettings({redact_url(self.url)!r}, schema={self.schema!r})"

    async def connect(self) -> psycopg.AsyncConnection[Any]:
        """Opens a connection that commits each statement by itself, outside of `connection.transaction()`."""
        try:
            parameters: dict[str, Any] = _DEFAULTS | conninfo_to_dict(self.url)
        except psycopg.ProgrammingError as error:
            raise InvalidOption("url", redact_url(self.url), redact(str(error)).strip()) from None
        try:
            connection = await psycopg.AsyncConnection.connect(
                **parameters | _ALWAYS, autocommit=True, prepare_threshold=5 if self.prepared else None
            )
            try:
                await self._set_up(connection)
            except BaseException:  # also if the caller gives up meanwhile
                await connection.close()
                raise
            return connection
        except psycopg.OperationalError as error:
            words = " ".join(redact(str(error)).split())
            if any(part in words for part in _BY_THE_SERVER):
                raise StoreRefused(f"{redact_url(self.url)} refused: {words}") from None
            raise StoreUnavailable(f"{redact_url(self.url)} is unavailable: {words}") from None

    async def _set_up(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Replaces defaults that a database or an account may have: the driver reads times in one style only, and under
        'serializable' workers beside each other would refuse each other's statements."""
        if not (connection.info.parameter_status("DateStyle") or "").startswith("ISO"):
            await connection.execute("SET datestyle TO 'ISO'")
        if self.prepared:  # a pooler would give other programs the connection with this setting
            await connection.execute("SET default_transaction_isolation TO 'read committed'")


@contextmanager
def refusals() -> Generator[None]:
    """Turns the errors of a database that refuses by a rule, a limit or a missing right into StoreRefused."""
    try:
        yield
    except (psycopg.IntegrityError, psycopg.errors.InsufficientPrivilege, psycopg.OperationalError) as error:
        raise StoreRefused(f"the database has refused: {' '.join(redact(str(error)).split())}") from error


async def connect(url: str) -> psycopg.AsyncConnection[Any]:
    """Opens a connection to the database of a PostgreSQL URL, in autocommit mode."""
    return await DatabaseSettings.parse(url).connect()


def check_schema(name: Any) -> str:
    """Returns the name of a schema. Refuses one that PostgreSQL would shorten or reserves."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidOption("schema", name, "must be the name of a PostgreSQL schema")
    if len(checks.text("schema", name).encode()) > 63:
        raise InvalidOption("schema", name, "must have at most 63 bytes")
    if name.startswith("pg_"):
        raise InvalidOption("schema", name, "must not begin with pg_, which PostgreSQL reserves")
    return name
