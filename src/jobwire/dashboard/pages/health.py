"""`/health`: the state of the dashboard and its stores, as JSON for programs and as a page for people."""

from __future__ import annotations

import time

from starlette.responses import JSONResponse, Response

from jobwire.counted import counted
from jobwire.dashboard.board import Board, Call
from jobwire.dashboard.render import View


async def answer(board: Board, *, known: bool) -> Response:
    """Returns 200 if all stores answer, else 503. Names and figures of stores are for known callers only."""
    states, campaigns = _states(board), _campaigns(board)
    healthy = _healthy(board)
    body: dict[str, object] = {"status": "ok" if healthy else "unavailable"}
    if known:
        body["stores"] = {
            name: {
                "status": states[name],
                "seconds_since_answer": round(time.time() - store.look.at, 1) if store.look.seen else None,
                "queues": len(store.look.figures) + store.look.left_out,
                "look_seconds": round(store.took, 3),
                "seconds_between_looks": round(store.interval, 1),
                "trouble": store.look.trouble,
            }
            for name, store in board.stores.items()
        }
        body["campaigns"] = {
            name: {"status": campaigns[name], "trouble": one.look.trouble} for name, one in board.campaigns.items()
        }
        body["open_pages"] = board.streams
    return JSONResponse(body, 200 if healthy else 503)


async def draw(call: Call) -> View:
    """Returns the same as a page, also with 503 if a store does not answer."""
    board = call.board
    states, campaigns = _states(board), _campaigns(board)
    silent = [name for known in (states, campaigns) for name, state in known.items() if state != "ok"]
    title = f"No answer from {', '.join(silent)}" if silent else f"{counted(len(states | campaigns), 'store')} answer"
    return View(
        "health.html",
        "The store answers" if not silent and len(states | campaigns) == 1 else title,
        {
            "rows": [(store, states[name]) for name, store in board.stores.items()],
            "databases": [(one, campaigns[name]) for name, one in board.campaigns.items()],
        },
        200 if _healthy(board) else 503,
    )


def _states(board: Board) -> dict[str, str]:
    return {
        name: "unknown" if not store.look.seen and store.look.trouble is None
        else "ok" if store.look.trouble is None
        else "unavailable"
        for name, store in board.stores.items()
    }  # fmt: skip


def _campaigns(board: Board) -> dict[str, str]:
    return {name: "ok" if one.look.trouble is None else "unavailable" for name, one in board.campaigns.items()}


def _healthy(board: Board) -> bool:
    return "unavailable" not in (*_states(board).values(), *_campaigns(board).values())
