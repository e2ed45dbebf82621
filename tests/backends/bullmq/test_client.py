"""A redis-py client of the caller's: jobwire connects as it does, and leaves the client itself alone."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis as blocking_redis
from redis import asyncio as async_redis
from redis.asyncio.connection import Connection as AsyncConnection
from redis.credentials import UsernamePasswordCredentialProvider

from awaiting import eventually
from jobwire import Queue, StoreRefused, StoreUnavailable, Worker, connect, sync
from jobwire.backends.redisio.client_settings import address_of
from jobwire.backends.redisio.connect import RedisStore
from jobwire.embedded import Cluster, Server, binaries
from jobwire.errors import InvalidOption
from jobwire.urls import parse_without_address

from .own_servers import answers, free_ports, running
from .tls_front import TLS, tls_front

OPTION = {"bullmq": "prefix", "bridgemq": "namespace"}
PROGRAM = Path(__file__).with_name("client_fork_program.py")
BOTH = pytest.mark.parametrize("module", [async_redis, blocking_redis], ids=["asyncio", "blocking"])


@pytest.fixture(params=OPTION)
def url(request: pytest.FixtureRequest, unique: str) -> str:
    """A URL without an address, of each protocol on Redis. In braces, as a cluster needs it."""
    return f"{request.param}:?{OPTION[request.param]}={{{unique}}}"


@asynccontextmanager
async def closed_after(client: Any) -> AsyncIterator[Any]:
    if hasattr(client, "aclose"):
        async with aclosing(client):
            yield client
    else:
        with closing(client):
            yield client


def _double(job: Any) -> Any:
    return job.data * 2


async def use(url: str, client: Any) -> None:
    """A queue and a worker on the client's server, each with connections of its own, twice."""
    async with closed_after(client):
        connection = connect(url, client=client)
        for _ in range(2):
            async with connection, Queue("mail", connection) as queue, Worker("mail", _double, connection):
                assert await (await queue.add(21)).wait(timeout=20) == 42
        twin = connection.backend.twin()
        await twin.open()
        assert sum((await twin.counts("mail")).values()) > 0
        await twin.close()


class Noted(AsyncConnection):
    """A connection class of the caller's, with a setting of its own."""

    made: list[str] = []  # noqa: RUF012 - of all of them

    def __init__(self, *, label: str, **options: Any) -> None:
        super().__init__(**options)
        self.made.append(label)


def _parts(server: Server) -> dict[str, Any]:
    parts = urlsplit(server.url)
    return {"host": parts.hostname, "port": parts.port, "password": parts.password}


async def _awaited_by(connection: Any) -> None:
    await connection.on_connect()


CLIENTS: dict[str, Callable[[Server], Any]] = {
    "asyncio": lambda server: async_redis.Redis(**_parts(server)),
    "blocking": lambda server: blocking_redis.Redis(**_parts(server)),
    "from a URL": lambda server: async_redis.from_url(server.url),
    "blocking from a URL": lambda server: blocking_redis.from_url(server.url),
    "text": lambda server: async_redis.Redis(**_parts(server), decode_responses=True, encoding="latin-1"),
    "blocking text": lambda server: blocking_redis.Redis(**_parts(server), decode_responses=True),
    "RESP 2": lambda server: blocking_redis.Redis(**_parts(server), protocol=2),
    "RESP 3": lambda server: async_redis.Redis(**_parts(server), protocol=3),
    "a pool that blocks": lambda server: async_redis.Redis.from_pool(
        async_redis.BlockingConnectionPool(**_parts(server), max_connections=1, timeout=1)
    ),
    "a blocking pool that blocks": lambda server: blocking_redis.Redis.from_pool(
        blocking_redis.BlockingConnectionPool(**_parts(server), max_connections=1, timeout=1)
    ),
    "a provider": lambda server: async_redis.Redis(
        **{**_parts(server), "password": None},
        credential_provider=UsernamePasswordCredentialProvider("default", _parts(server)["password"]),
    ),
    "a blocking provider": lambda server: blocking_redis.Redis(
        **{**_parts(server), "password": None},
        credential_provider=UsernamePasswordCredentialProvider("default", _parts(server)["password"]),
    ),
    "settings": lambda server: blocking_redis.Redis(
        **_parts(server), client_name="ours", health_check_interval=1, socket_keepalive=False, socket_timeout=7
    ),
    "a connect function": lambda server: async_redis.Redis(**_parts(server), redis_connect_func=_awaited_by),
    "a connection class": lambda server: async_redis.Redis.from_pool(
        async_redis.ConnectionPool(**_parts(server), connection_class=Noted, label="noted")
    ),
}


@pytest.mark.parametrize("kind", CLIENTS)
async def test_a_queue_and_a_worker_connect_as_the_client_does(url: str, jobwire_valkey: Server, kind: str) -> None:
    Noted.made.clear()
    await use(url, CLIENTS[kind](jobwire_valkey))
    assert bool(Noted.made) == (kind == "a connection class")


@BOTH
async def test_the_clients_database_and_the_urls_options_are_used(
    jobwire_valkey: Server, module: Any, unique: str
) -> None:
    async with closed_after(module.Redis(**_parts(jobwire_valkey), db=3)) as client:
        async with connect(f"bullmq:?prefix={unique}", client=client) as connection, Queue("q", connection) as queue:
            await queue.add(1)
        async with async_redis.Redis(**_parts(jobwire_valkey), db=3) as there:
            assert await there.llen(f"{unique}:q:wait") == 1
            await there.delete(*[key async for key in there.scan_iter(f"{unique}:*", count=10_000)])


@pytest.fixture
async def socket_path(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The socket of a server that has no port."""
    folder = tmp_path_factory.mktemp("s")
    path = folder / "valkey.sock"
    command = [str(binaries.VALKEY.find()), "--port", "0", "--dir", str(folder), "--save", ""]
    with running([*command, "--unixsocket", str(path), "--requirepass", "pw"]):
        async with async_redis.Redis(unix_socket_path=str(path), password="pw") as client:
            await eventually(lambda: answers(client), within=30)
        yield str(path)


@BOTH
async def test_a_unix_socket(url: str, socket_path: str, module: Any) -> None:
    client = module.Redis(unix_socket_path=socket_path, password="pw", db=1)
    assert f"unix://{socket_path}" in repr(connect(url, client=client))
    await use(url, client)


@pytest.mark.slow
@BOTH
async def test_tls(url: str, jobwire_valkey: Server, module: Any) -> None:
    async with tls_front(urlsplit(jobwire_valkey.url).port or 0) as port:
        patience = {"socket_timeout": 60, "socket_connect_timeout": 60}  # the front runs in this process, too
        parts = {**_parts(jobwire_valkey), "port": port, "ssl": True, **patience}
        await use(url, module.Redis(**parts, ssl_ca_certs=str(TLS / "certificate.pem")))
        await use(url, module.Redis(**parts, ssl_cert_reqs=None, ssl_check_hostname=False))
        stranger = module.Redis(**parts, ssl_ca_certs=str(TLS / "stranger.pem"))
        async with closed_after(stranger):
            connection = connect(url, client=stranger)
            with pytest.raises(StoreUnavailable, match=r"(?i)certificate"):
                await connection.open()
            await connection.close()


@BOTH
@pytest.mark.parametrize(
    "who", [{"password": "sentinel-pw"}, {"username": "watcher", "password": "watcher-pw"}], ids=["password", "user"]
)
async def test_sentinels(url: str, guarded: int, module: Any, who: dict[str, str]) -> None:
    sentinel = module.Sentinel([("127.0.0.1", guarded)], sentinel_kwargs=who, password="server-pw")
    client = sentinel.master_for("main", db=2)
    assert f"sentinel://:***@127.0.0.1:{guarded}/main/2" in repr(connect(url, client=client))
    await use(url, client)
    await _close_sentinels(sentinel)


@BOTH
async def test_sentinels_behind_tls(url: str, guarded: int, module: Any) -> None:
    async with tls_front(guarded) as port:
        about = {"password": "sentinel-pw", "ssl": True, "ssl_ca_certs": str(TLS / "certificate.pem")}
        sentinel = module.Sentinel([("127.0.0.1", port)], sentinel_kwargs=about, password="server-pw")
        # A blocking client would hold up the front, which runs in this event loop: jobwire never uses it.
        await use(url, sentinel.master_for("main"))
        await _close_sentinels(sentinel)


async def _close_sentinels(sentinel: Any) -> None:
    for one in sentinel.sentinels:
        if hasattr(one, "aclose"):
            await one.aclose()
        else:
            one.close()


@BOTH
async def test_a_cluster(url: str, jobwire_valkey_cluster: Cluster, module: Any) -> None:
    client = module.RedisCluster.from_url(jobwire_valkey_cluster.url)
    assert "cluster://:***@127.0.0.1:" in repr(connect(url, client=client))
    await use(url, client)


@BOTH
async def test_nodes_of_a_cluster_are_reached_where_the_client_has_them_mapped_to(
    url: str, jobwire_valkey_cluster: Cluster, module: Any
) -> None:
    asked: list[tuple[str, int]] = []

    def remap(address: tuple[str, int]) -> tuple[str, int]:
        asked.append(address)
        return address

    async with closed_after(module.RedisCluster.from_url(jobwire_valkey_cluster.url, address_remap=remap)) as client:
        asked.clear()
        async with connect(url, client=client) as connection:
            await connection.backend.counts("mail")
        assert asked


async def test_a_server_of_a_cluster_needs_a_cluster_client(url: str, jobwire_valkey_cluster: Cluster) -> None:
    async with async_redis.from_url(jobwire_valkey_cluster.urls[0]) as client:
        connection = connect(url, client=client)
        with pytest.raises(StoreRefused, match="RedisCluster"):
            await connection.open()
        await connection.close()


@BOTH
async def test_the_client_is_neither_used_nor_closed(url: str, jobwire_valkey: Server, module: Any) -> None:
    """Its only connection is taken for the whole time, and still there afterwards."""
    pool = module.ConnectionPool(**_parts(jobwire_valkey), max_connections=1)
    async with closed_after(module.Redis.from_pool(pool)) as client:
        number = await _now(client.client_id())
        held = await _now(pool.get_connection())
        async with (
            connect(url, client=client) as connection,
            Queue("mail", connection) as queue,
            Worker("mail", _double, connection),
        ):
            assert await (await queue.add(21)).wait(timeout=20) == 42
        await _now(pool.release(held))
        assert await _now(client.client_id()) == number


async def _now(answer: Any) -> Any:
    return await answer if hasattr(answer, "__await__") else answer


def test_blocking_code_takes_a_client(url: str, jobwire_valkey: Server) -> None:
    with blocking_redis.Redis(**_parts(jobwire_valkey), decode_responses=True) as client:
        for make in (sync.connect, sync.Connection):
            with make(url, client=client) as connection, sync.Queue("mail", connection) as queue:
                queue.add(1)
                assert {job.data for job in queue.jobs()} == {1}


@pytest.mark.parametrize("protocol", OPTION)
def test_a_forked_child_has_connections_of_its_own(jobwire_valkey: Server, unique: str, protocol: str) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(PROGRAM), protocol, jobwire_valkey.url, unique]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


async def test_a_wrong_password_is_a_refusal_and_shown_nowhere(url: str, jobwire_valkey: Server) -> None:
    parts = {**_parts(jobwire_valkey), "username": "app", "password": "not-this-one"}
    async with async_redis.Redis(**parts) as client:
        connection = connect(url, client=client)
        with pytest.raises(StoreRefused) as refusal:
            await connection.open()
        await connection.close()
    shown = f"{refusal.value} {connection!r} {connection.address!r} {connection.address.client!r}"
    assert "not-this-one" not in shown
    assert f"redis://app:***@{parts['host']}:{parts['port']}/0" in str(refusal.value)


async def test_the_clients_timeouts_hold_and_its_retries_do_not() -> None:
    named = parse_without_address("bullmq:")
    for socket_timeout, reply_timeout in ((0.5, 0.5), (None, 10.0)):
        client = blocking_redis.Redis(socket_timeout=socket_timeout, socket_connect_timeout=3)
        store = RedisStore(address_of(client, named))
        await store.open()
        options = store.client.connection_pool.connection_kwargs
        assert (store.reply_timeout, options["socket_connect_timeout"]) == (reply_timeout, 3)
        assert options["retry"].get_retries() == 0
        await store.close()
        client.close()


@pytest.fixture
def unopened() -> Iterator[blocking_redis.Redis]:
    """A client of a port that nothing listens on: whatever tried to use it would fail."""
    with blocking_redis.Redis(port=free_ports(1)[0], password="hidden") as client:
        yield client


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        (None, "url", "name the protocol"),
        (7, "url", "name the protocol"),
        ("bullmq+redis://127.0.0.1:6379/0", "url", "no address"),
        ("bullmq+embedded:", "url", "no address"),
        ("bullmq://127.0.0.1", "url", "no address"),
        ("bullmq:127.0.0.1", "url", "no address"),
        ("bullmq", "url", "no address"),
        ("redis://127.0.0.1", "url", "say which protocol"),
        ("bulmq:", "url", "unknown protocol"),
        ("bullmq:?namespace=x", "url", "did you mean|bullmq takes"),
        ("bullmq:?prefx=x", "url", "did you mean prefix"),
        ("bullmq:?socket_timeout=5", "url", "unknown option socket_timeout"),
        ("bullmq:?prefix=a b", "url", "spaces"),
        ("pgboss:", "client", "bullmq and bridgemq"),
        ("pgboss+postgresql://127.0.0.1/x", "client", "bullmq and bridgemq"),
        ("monque:?collection=x", "client", "bullmq and bridgemq"),
        ("memory:", "client", "bullmq and bridgemq"),
    ],
)
def test_a_url_that_does_not_go_with_a_client_is_refused(
    unopened: blocking_redis.Redis, given: Any, field: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBWIRE_URL", "bullmq+redis://127.0.0.1:6379/0")
    with pytest.raises(InvalidOption, match=words) as refusal:
        connect(given, client=unopened)
    assert refusal.value.field == field


class BlockingNoted(blocking_redis.connection.Connection):
    """A connection class of the caller's that asyncio has no use for."""


def _refused_clients() -> dict[str, Callable[[], Any]]:
    sentinel = blocking_redis.Sentinel([("127.0.0.1", 1)])
    return {
        "a text": lambda: "redis://127.0.0.1",
        "an object": object,
        "a class": lambda: blocking_redis.Redis,
        "a pool": lambda: blocking_redis.ConnectionPool(password="hidden"),
        "sentinels": lambda: sentinel,
        "a replica": lambda: sentinel.slave_for("main"),
        "a class of connections": lambda: blocking_redis.Redis.from_pool(
            blocking_redis.ConnectionPool(connection_class=BlockingNoted, password="hidden")
        ),
        "a connect function": lambda: blocking_redis.Redis(redis_connect_func=print),
        "OCSP": lambda: blocking_redis.Redis(ssl=True, ssl_validate_ocsp_stapled=True),
    }


@pytest.mark.parametrize("kind", _refused_clients())
def test_a_client_that_jobwire_can_not_follow_is_refused(kind: str, url: str) -> None:
    with pytest.raises(InvalidOption) as refusal:
        connect(url, client=_refused_clients()[kind]())
    assert refusal.value.field == "client"
    assert "hidden" not in str(refusal.value)


def test_a_url_without_an_address_alone_says_what_is_missing() -> None:
    with warnings.catch_warnings(), pytest.raises(InvalidOption, match="bullmq: alone needs a client"):
        connect("bullmq:?prefix=x")
