"""Open pages beside a busy worker."""

from __future__ import annotations

import asyncio
from typing import Any

from bench.large_store import Store
from starlette.applications import Starlette


async def stream_in_process(app: Starlette, path: str) -> None:
    """Keeps a page open, until it is cancelled."""
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [(b"accept", b"text/event-stream")], "server": ("127.0.0.1", 80), "scheme": "http", "root_path": "", "client": ("127.0.0.1", 1), "http_version": "1.1", "asgi": {"version": "3.0"}}  # fmt: skip

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None: ...

    await app(scope, receive, send)


async def measure(store: Store, rounds: int, seconds: float) -> dict[str, Any]:
    raise NotImplementedError


def markdown(results: dict[str, Any]) -> list[str]:
    return []
