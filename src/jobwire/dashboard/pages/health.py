"""`/health`: the state of the dashboard and its stores, as JSON for programs."""

from __future__ import annotations

import time

from starlette.responses import JSONResponse, Response

from jobwire.dashboard.board import Board


async def answer(board: Board, *, known: bool) -> Response:
    """Returns 200 if all stores answer, else 503. Names and figures of stores are for known callers only."""
    states = {
        name: "unknown" if not store.look.seen and store.look.trouble is None
        else "ok" if store.look.trouble is None
        else "unavailable"
        for name, store in board.stores.items()
    }  # fmt: skip
    campaigns = {name: "ok" if one.look.trouble is None else "unavailable" for name, one in board.campaigns.items()}
    healthy = "unavailable" not in (*states.values(), *campaigns.values())
    body: dict[str, object] = {"status": "ok" if healthy else "unavailable"}
    if known:
        body["stores"] = {
            name: {
                "status": states[name],
                "seconds_since_answer": round(time.time() - store.look.at, 1) if store.look.seen else None,
                "queues": len(store.look.figures) + store.look.left_out,
                "trouble": store.look.trouble,
            }
            for name, store in board.stores.items()
        }
        body["campaigns"] = {
            name: {"status": campaigns[name], "trouble": one.look.trouble} for name, one in board.campaigns.items()
        }
        body["open_pages"] = board.streams
    return JSONResponse(body, 200 if healthy else 503)
