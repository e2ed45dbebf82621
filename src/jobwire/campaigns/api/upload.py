"""Receives a file as the body of a request, in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import HTTPException, Request
from starlette.requests import ClientDisconnect

TYPES = ("text/csv", "application/octet-stream")


@asynccontextmanager
async def uploaded(request: Request) -> AsyncGenerator[Path]:
    """Writes the body to a temporary file, which is deleted at the end of the block. A body that was cut off raises."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in TYPES:
        hint = "send the file itself as the body: curl --data-binary @channels.csv -H 'Content-Type: text/csv'"
        raise HTTPException(415, f"the content type must be text/csv (got {kind or 'none'}); {hint}")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise HTTPException(415, "the body must not be compressed")
    with tempfile.NamedTemporaryFile(prefix="jobwire-import-", suffix=".csv") as file:
        try:
            async for chunk in request.stream():
                file.write(chunk)
        except ClientDisconnect:
            raise HTTPException(400, "the body was cut off; nothing was imported") from None
        file.flush()
        yield Path(file.name)
