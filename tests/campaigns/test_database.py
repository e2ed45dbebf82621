"""The address of the database: plain PostgreSQL URLs, those that Supabase shows, and clear errors."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import timedelta
from urllib.parse import quote

import psycopg
import pytest

from jobwire.campaigns import DatabaseSettings, connect, connections
from jobwire.errors import InvalidOption, StoreRefused, StoreUnavailable

SUPABASE = "postgresql://postgres.abcd:p%40ss@aws-0-eu-central-1.pooler.supabase.com"


@pytest.mark.parametrize(
    ("url", "driver", "schema", "prepared"),
    [
        ("postgresql://localhost/app", "postgresql://localhost/app", "public", True),
        ("postgres://h/app?sslmode=require&schema=crm", "postgres://h/app?sslmode=require", "crm", True),
        (f"{SUPABASE}:5432/postgres", f"{SUPABASE}:5432/postgres", "public", True),
        (f"{SUPABASE}:6543/postgres", f"{SUPABASE}:6543/postgres", "public", False),
        (f"{SUPABASE}:6543/postgres?pgbouncer=true&connection_limit=1", f"{SUPABASE}:6543/postgres", "public", False),
        ("postgresql:///app?host=/run/pg&pgbouncer=true", "postgresql:///app?host=%2Frun%2Fpg", "public", False),
        ("postgresql://a:1,b:2/app?target_session_attrs=any", "postgresql://a:1,b:2/app?target_session_attrs=any",
         "public", True),
    ],
    ids=["plain", "schema", "supabase", "pooler", "prisma", "socket", "hosts"],  # pytest-xdist takes an @ for its own
)  # fmt: skip
def test_the_url_of_any_postgresql_is_taken_as_it_is(url, driver, schema, prepared):
    settings = DatabaseSettings.parse(url)
    assert (settings.schema, settings.prepared) == (schema, prepared)
    from psycopg.conninfo import conninfo_to_dict

    assert conninfo_to_dict(settings.url) == conninfo_to_dict(driver)


def test_a_schema_that_is_given_replaces_that_of_the_url():
    assert DatabaseSettings.parse("postgresql://h/app?schema=a", "b").schema == "b"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://h", "must be a plain PostgreSQL URL, such as postgresql://localhost/app"),
        ("pgboss+postgresql://u:secret@h/app?schema=x", r"write postgresql://u:\*\*\*@h/app"),
        ("", "must be a plain PostgreSQL URL"),
        (7, "must be a string"),
    ],
    ids=["redis", "pgboss", "empty", "number"],
)
def test_another_url_is_refused(url, words):
    with pytest.raises(InvalidOption, match=words) as refused:
        DatabaseSettings.parse(url)
    assert "secret" not in str(refused.value)


async def test_no_error_shows_the_password(jobwire_postgres):
    with pytest.raises(StoreUnavailable) as lost:
        await connect("postgresql://u:hunter2@127.0.0.1:1/app")
    with pytest.raises(InvalidOption) as unknown:
        await connect("postgresql://u:hunter2@127.0.0.1:1/app?nonsense=1")
    with pytest.raises(StoreRefused) as refused:
        await connect(jobwire_postgres.url.replace("/postgres", "/no_such_database"))
    assert "no_such_database" in str(refused.value)
    for error in (lost, unknown, refused):
        assert "hunter2" not in str(error.value)
    assert "hunter2" not in repr(DatabaseSettings.parse("postgresql://u:hunter2@h/app"))


async def test_a_connection_works_without_prepared_statements(jobwire_postgres):
    joiner = "&" if "?" in jobwire_postgres.url else "?"
    async with await connect(f"{jobwire_postgres.url}{joiner}pgbouncer=true") as connection:
        assert connection.prepare_threshold is None
        assert connection.autocommit


def _with(url: str, options: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}options={quote(options, safe='')}"


async def test_a_database_with_a_date_style_of_its_own_is_read_as_any_other(jobwire_postgres):
    """PostgreSQL writes `IST` for India's time in this style, and reads it as that of another country."""
    url = _with(jobwire_postgres.url, "-c datestyle=SQL,DMY -c timezone=Asia/Kolkata")
    async with await connect(url) as connection:
        cursor = await connection.execute("SELECT now(), now()::text::timestamptz = now()")
        moment, same = await anext(aiter(cursor))
        assert (moment.utcoffset(), same) == (timedelta(hours=5, minutes=30), True)


async def test_two_workers_are_isolated_as_usual_though_the_database_has_another_default(jobwire_postgres):
    url = _with(jobwire_postgres.url, "-c default_transaction_isolation=serializable")
    async with await connect(url) as connection:
        for query in ("SHOW transaction_isolation", "SHOW default_transaction_isolation"):
            assert await anext(aiter(await connection.execute(query))) == ("read committed",)


def test_without_the_driver_the_extra_is_named():
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "import jobwire.campaigns, jobwire.campaigns.states, jobwire.campaigns.templates\n"
        "try: jobwire.campaigns.init\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == (
        "MissingExtra jobwire.campaigns.init needs more packages: pip install 'jobwire[postgres]'"
    )


def test_every_public_name_exists():
    from jobwire import campaigns

    assert all(getattr(campaigns, name).__doc__ for name in campaigns.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = campaigns.nonsense


async def _forever(*_: object) -> None:
    await asyncio.Event().wait()


async def test_a_connection_that_is_given_up_while_it_is_set_up_is_closed(jobwire_postgres, monkeypatch):
    opened: asyncio.Queue[psycopg.AsyncConnection] = asyncio.Queue()

    async def set_up(_: DatabaseSettings, connection: psycopg.AsyncConnection) -> None:
        opened.put_nowait(connection)
        await _forever()

    monkeypatch.setattr(DatabaseSettings, "_set_up", set_up)
    connecting = asyncio.create_task(connect(jobwire_postgres.url))
    connection = await opened.get()
    connecting.cancel()
    await asyncio.wait([connecting])
    assert connecting.cancelled()
    assert connection.closed


async def test_a_connection_that_is_given_up_while_it_is_asked_for_a_sign_of_life_is_closed(
    jobwire_postgres, monkeypatch
):
    monkeypatch.setattr(connections, "_ASK_AFTER", 0.0)
    async with connections.Connections(DatabaseSettings.parse(jobwire_postgres.url)) as pool:
        async with pool.use() as connection:
            monkeypatch.setattr(connection, "execute", _forever)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0), pool.use():
                pass
        assert connection.closed
