"""Requests to an ASGI application in this process."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import ASGIApp

from jobwire.dashboard.forms import COOKIE, FIELD, form_token, new_cookie
from jobwire.serving.tokens import OPEN


async def get(app: ASGIApp, address: str) -> int:
    """Gets a page. Returns its size in bytes."""
    return await _answered(app, _scope(address, []))


async def submit(app: ASGIApp, address: str) -> int:
    """Sends the parameters of the address as a form of a dashboard that knows no users. Returns the answer's size."""
    path, _, fields = address.partition("?")
    cookie = new_cookie()
    body = f"{fields}&{FIELD}={form_token(cookie, OPEN)}".encode()
    headers = [
        (b"cookie", f"{COOKIE}={cookie}".encode()),
        (b"sec-fetch-site", b"same-origin"),
        (b"content-type", b"application/x-www-form-urlencoded"),
    ]
    return await _answered(app, {**_scope(path, headers), "method": "POST"}, body)


async def _answered(app: ASGIApp, scope: dict[str, Any], body: bytes = b"") -> int:
    status, size = 0, 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status, size
        status = message.get("status", status)
        size += len(message.get("body", b""))

    await app(scope, receive, send)
    if status != 200:
        raise RuntimeError(f"{scope['path']} was answered with {status}")
    return size


async def keep_open(app: ASGIApp, address: str) -> None:
    """Keeps the stream of a page open, until it is cancelled."""

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None: ...

    await app(_scope(address, [(b"accept", b"text/event-stream")]), receive, send)


def _scope(address: str, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    path, _, query = address.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
        "root_path": "",
        "path": path,
        "query_string": query.encode(),
        "headers": headers,
    }
