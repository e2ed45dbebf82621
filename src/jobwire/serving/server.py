"""Serves one ASGI application with uvicorn, until a signal stops it.

Without tokens it can be used by this machine only: the address must be a loopback address, and a request must name one
as its host and must not come from a page of another origin. So neither another machine nor a web page in a browser of
this machine can use it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Generator

import uvicorn
from starlette.types import ASGIApp

from jobwire.portal import portal
from jobwire.serving.listening import url_of
from jobwire.serving.loopback import LoopbackOnly

_AT_ONCE = 500
"""Connections at once. Further ones get 503."""
_STOPPING = 10
"""Seconds that requests get to finish when the server is stopped."""


async def serve(
    app: ASGIApp,
    listening: socket.socket,
    *,
    open_to_all: bool,
    on_ready: Callable[[str], None] = lambda url: None,
    on_stop: Callable[[], None] = lambda: None,
) -> None:
    """Serves until it is stopped by SIGINT or SIGTERM. Calls `on_ready` with the URL once connections are taken, and
    `on_stop` when a signal has come, before it waits for requests to end.

    `listening` is the result of `listen`, with the same `open_to_all`: True if the application asks for no tokens."""
    server = _server(app, open_to_all, on_stop)
    serving = await _started(server, listening)
    if server.started:
        on_ready(url_of(listening))
    await serving


@contextlib.contextmanager
def served_in_background(
    app: ASGIApp,
    listening: socket.socket,
    *,
    open_to_all: bool,
    on_stop: Callable[[], None] = lambda: None,
) -> Generator[str]:
    """Serves in the portal's thread while the block runs, and yields the URL. Signals are left to the main thread."""
    server = _server(app, open_to_all, on_stop)
    serving = portal.run(_started(server, listening))

    async def end() -> None:
        server.stop()
        await serving

    try:
        yield url_of(listening)
    finally:
        portal.run(end())


def _server(app: ASGIApp, open_to_all: bool, on_stop: Callable[[], None]) -> _Server:
    config = uvicorn.Config(
        LoopbackOnly(app) if open_to_all else app,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_AT_ONCE,
        timeout_graceful_shutdown=_STOPPING,
    )
    return _Server(config, on_stop)


async def _started(server: _Server, listening: socket.socket) -> asyncio.Task[None]:
    """Returns the task that serves, once connections are taken or it has ended."""
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not (server.started or serving.done()):  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    return serving


class _Server(uvicorn.Server):
    """Ends quietly: uvicorn raises the signal that stopped it once more, and the process would die of it."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self.stop)
        try:
            yield
        finally:
            for one in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(one)

    def stop(self) -> None:
        self.force_exit = self.should_exit  # a second signal does not wait for requests
        self.should_exit = True
        self._on_stop()
