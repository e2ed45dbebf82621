"""The HTTP endpoint of a worker: `/metrics` for Prometheus, `/ready` and `/live` for service managers.

    async with Endpoint(worker, metrics).serving("0.0.0.0", 9464):
        await worker.run()

It is served from threads, so that it also answers while a handler blocks the worker's event loop. `/live` is then 503,
since only a restart helps. `/ready` is 503 while the worker does not claim jobs, or its store does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from dataclasses import asdict
from http import HTTPStatus
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, cast
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import prometheus_client

from jobwire.observe.health import health
from jobwire.observe.metrics import Metrics
from jobwire.worker import Worker

PATIENCE = 3.0
"""Seconds within which the event loop must run a callback."""

Environment = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environment, StartResponse], Iterable[bytes]]


class Endpoint:
    """Answers requests about one worker. Must be made in the worker's event loop. There is no access control."""

    def __init__(self, worker: Worker, metrics: Metrics) -> None:
        self._worker = worker
        self._metrics = cast("Application", prometheus_client.make_wsgi_app(metrics.registry))  # pyright: ignore[reportUnknownMemberType] untyped
        self._loop = asyncio.get_running_loop()

    @contextlib.asynccontextmanager
    async def serving(self, host: str, port: int) -> AsyncGenerator[int]:
        """Serves inside the block. Yields the port (0: a free one)."""
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with _server(family, address[:2]) as server:
            server.set_app(self._answer)
            thread = threading.Thread(target=server.serve_forever, name="jobwire-endpoint", daemon=True)
            thread.start()
            try:
                yield server.server_port
            finally:
                await asyncio.to_thread(server.shutdown)
                thread.join()

    def _answer(self, environment: Environment, start: StartResponse) -> Iterable[bytes]:
        match environment["PATH_INFO"]:
            case "/metrics":
                return self._metrics(environment, start)
            case "/live":
                return _show(start, self._ask(_turn()))
            case "/ready":
                return _show(start, self._ask(self._health()))
            case _:
                return _send(start, HTTPStatus.NOT_FOUND, {"ok": False, "why": "see /metrics, /live and /ready"})

    async def _health(self) -> dict[str, Any]:
        if self._worker.running:
            return asdict(await health(self._worker, timeout=PATIENCE / 2))
        return {"ok": False, "why": "the worker has not started" if self._worker.claiming else "the worker has stopped"}

    def _ask(self, question: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any] | None:
        """Runs a coroutine in the worker's event loop. Returns None if that does not happen in time."""
        try:
            asked = asyncio.run_coroutine_threadsafe(question, self._loop)
        except RuntimeError:  # the loop is closed
            question.close()
            return None
        try:
            return asked.result(PATIENCE)
        except TimeoutError:
            asked.cancel()
            return None


async def _turn() -> dict[str, Any]:
    return {"ok": True, "why": ""}


def _show(start: StartResponse, found: dict[str, Any] | None) -> Iterable[bytes]:
    body = found or {"ok": False, "why": f"the event loop has been blocked for {PATIENCE:g} s"}
    return _send(start, HTTPStatus.OK if body["ok"] else HTTPStatus.SERVICE_UNAVAILABLE, body)


def _send(start: StartResponse, status: HTTPStatus, body: dict[str, Any]) -> Iterable[bytes]:
    start(f"{status.value} {status.phrase}", [("Content-Type", "application/json")])
    return [json.dumps(body).encode()]


def _server(family: int, address: tuple[Any, ...]) -> WSGIServer:
    class Server(ThreadingMixIn, WSGIServer):
        address_family = family
        daemon_threads = True

        def server_bind(self) -> None:
            """Binds without the look-up of the host's name in the library's own method, which may take long."""
            TCPServer.server_bind(self)
            self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
            self.setup_environ()

    return Server(address, _QuietHandler)  # pyright: ignore[reportArgumentType] an address of the family


class _QuietHandler(WSGIRequestHandler):
    """Answers requests without a line in the log for each."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass
