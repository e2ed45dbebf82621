"""Sends the parts of an open page that have changed, as server-sent events.

A page is drawn again after each look at its store, at most once a second, and its parts are compared with those that
were sent. So an open page costs little while nothing changes, beyond the look and the drawing that all pages share.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence

from starlette.responses import Response, StreamingResponse

from jobwire.dashboard.board import Call
from jobwire.dashboard.drawings import Draw, Drawings, Watchable

MOST_STREAMS = 200
_SOONEST = 1.0
"""Seconds between two messages at least."""
_LATEST = 10.0
"""Seconds after which a page is drawn again without a look: ages of jobs grow by themselves."""
_SIGN_OF_LIFE = 15.0


def stream(call: Call, draw: Draw, stores: Sequence[Watchable], drawings: Drawings) -> Response:
    """Returns the stream of one page, which is drawn by `draw`."""
    if call.board.streams >= MOST_STREAMS:
        return Response("too many pages are open", 503, {"Retry-After": "30"})
    return StreamingResponse(_messages(call, draw, stores, drawings), media_type="text/event-stream")


async def _messages(call: Call, draw: Draw, stores: Sequence[Watchable], drawings: Drawings) -> AsyncGenerator[str]:
    board = call.board
    board.streams += 1
    for store in stores:
        store.watch()
    sent: Mapping[str, str] = {}
    quiet_since = time.monotonic()
    stopped = asyncio.create_task(board.stopping.wait())
    try:
        yield "retry: 1000\n\n"
        while not stopped.done():
            now = await drawings.of(call, draw, stores)
            changed = {name: html for name, html in now.items() if sent.get(name) != html}
            sent = now
            if changed:
                quiet_since = time.monotonic()
                yield f"data: {json.dumps(changed)}\n\n"
            elif time.monotonic() - quiet_since > _SIGN_OF_LIFE:
                quiet_since = time.monotonic()
                yield ": nothing has changed\n\n"
            await asyncio.wait([stopped], timeout=_SOONEST)
            looks = [asyncio.create_task(store.next_look(_LATEST)) for store in stores]
            await asyncio.wait([stopped, *looks], timeout=_LATEST, return_when=asyncio.FIRST_COMPLETED)
            for look in looks:
                look.cancel()
    finally:
        stopped.cancel()
        board.streams -= 1
        for store in stores:
            store.unwatch()
