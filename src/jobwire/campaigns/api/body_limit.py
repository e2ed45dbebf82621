"""Caps the size of request bodies, also of those that don't state it."""

from __future__ import annotations

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobwire.campaigns.api.errors import answer
from jobwire.errors import megabytes

JSON_LIMIT = 256 * 1024
"""Bytes of a JSON body."""
UPLOAD_LIMIT = 256 * 1024 * 1024
"""Bytes of a file of channels, unless another limit is given. A million channels take about 30 MB."""
IMPORT = "/channels/import"


class BodyLimit:
    """An ASGI middleware that answers 413 if a body is too large."""

    def __init__(self, app: ASGIApp, *, upload_limit: int) -> None:
        self._app = app
        self._upload_limit = upload_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._upload_limit if scope["path"].endswith(IMPORT) else JSON_LIMIT
        stated = Headers(scope=scope).get("content-length", "")
        if stated.isdecimal() and int(stated) > limit:
            await answer(413, _too_large(limit))(scope, receive, send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > limit:
                raise HTTPException(413, _too_large(limit))
            return message

        await self._app(scope, counted, send)


def _too_large(limit: int) -> str:
    return f"the body is too large: at most {megabytes(limit)} are taken"
