"""A TCP proxy on loopback that can be cut (connections reset) or turned into a black hole (bytes vanish)."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType


class Proxy:
    """Stands between a client and a server on 127.0.0.1; at a free port, unless one is given."""

    def __init__(self, target_port: int, port: int = 0) -> None:
        self._target = target_port
        self._server: asyncio.Server | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.delay = 0.0
        """Seconds that bytes are under way, in each direction."""
        self._alive: set[int] = set()
        self._dead: set[int] = set()
        self._new_are_dead = False
        self._refusing = False
        self.port = port
        self.accepted = 0

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for pump in list(self._pumps):
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def through(self, url: str) -> str:
        """The URL of the server behind the proxy, credentials and all, with the proxy in the server's place."""
        return url.replace(f":{self._target}", f":{self.port}")

    def cut(self) -> None:
        """Reset every connection; new ones are accepted."""
        for writer in list(self._writers):
            writer.transport.abort()

    def swallow(self) -> None:
        """From now on bytes are read by nobody: neither side hears of it."""
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    def half_open(self) -> None:
        """From now on every connection, old or new, takes bytes in and gives none out; neither side hears of it."""
        self._dead |= self._alive
        self._alive.clear()
        self._new_are_dead = True

    def refuse(self) -> None:
        """Reset every connection, and each new one at once."""
        self._refusing = True
        self.cut()

    def accept(self) -> None:
        """New connections work again."""
        self._refusing = False

    def heal(self) -> None:
        """New connections work again. Those that were half-open stay so."""
        self._new_are_dead = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        self.accepted += 1
        number = self.accepted
        (self._dead if self._new_are_dead else self._alive).add(number)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            pump = asyncio.create_task(self._pump(source, sink, number))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, number: int) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                await asyncio.sleep(self.delay)
                await self._flowing.wait()
                if number in self._dead:
                    continue
                sink.write(data)
                await sink.drain()
        self._writers.discard(sink)
        sink.transport.abort()
