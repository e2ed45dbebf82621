"""Servers, proxies and load balancers close connections that are idle. The next add makes another connection. It is not
sent on the closed one, so it can't happen twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from closing import close_postgres_connections, close_redis_connections
from faults.proxy import Proxy
from jobwire import NewJob, Queue, State, urls

from .conftest import QUEUE
from .recycled import new_name


@asynccontextmanager
async def closable(url: str) -> AsyncIterator[tuple[str, Callable[[], int]]]:
    """Yields a URL of the same store, and a function that closes the connections that were made with it."""
    address, name = urls.parse(url), new_name()
    server = address.driver_url
    match address.protocol:
        case "bullmq" | "bridgemq":
            yield f"{url}&client_name={name}", lambda: close_redis_connections(server, name)
        case "pgboss":
            yield f"{url}&application_name={name}", lambda: close_postgres_connections(server, name)
        case _:  # MongoDB can't be asked to close a connection
            async with Proxy(urlsplit(server).port or 0) as proxy:

                def cut() -> int:
                    proxy.cut()
                    return proxy.accepted

                yield proxy.through(url), cut


async def test_an_add_after_the_server_has_closed_all_connections_is_made_once(remote: str) -> None:
    async with closable(remote) as (url, close), Queue(QUEUE, url) as queue:
        await queue.add(1)
        assert close()
        await queue.add(2)
        assert close()
        await queue.add_many([NewJob(3), NewJob(4)])
        assert close()
        await queue.add(5, delay=3600)
        counts = await queue.counts()
        assert (counts[State.WAITING], counts[State.DELAYED]) == (4, 1)
