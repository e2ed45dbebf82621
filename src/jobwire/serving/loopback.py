"""Keeps an application without tokens to the machine that it runs on."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_REFUSAL = "without tokens, only programs and pages of this machine are answered"


class LoopbackOnly:
    """An ASGI middleware that refuses requests that a page of another origin has made, directly or by a name that
    resolves to this machine."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host, origin = headers.get("host", ""), headers.get("origin")
            if not _is_loopback_name(host) or (origin is not None and urlsplit(origin).netloc != host):
                refusal = JSONResponse({"error": _REFUSAL}, 403)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_loopback_name(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
