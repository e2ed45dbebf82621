"""A TLS front before a plain server, as a load balancer would be: the embedded Valkey is built without TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

TLS = Path(__file__).parent / "tls"


@asynccontextmanager
async def tls_front(port: int, host: str = "127.0.0.1") -> AsyncIterator[int]:
    """The port of the host on which the server behind `port` of 127.0.0.1 is reached by TLS only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    links: set[asyncio.Task[None]] = set()

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        target.close()

    async def link(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        links.add(asyncio.current_task())  # type: ignore[arg-type]
        to_server = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, to_server[1]), pump(to_server[0], writer))

    front = await asyncio.start_server(link, host, 0, ssl=context)
    try:
        yield front.sockets[0].getsockname()[1]
    finally:
        front.close()
        for task in links:
            task.cancel()
        await asyncio.gather(*links, return_exceptions=True)
