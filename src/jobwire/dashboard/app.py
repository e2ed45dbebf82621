"""Puts the dashboard together."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from jobwire import checks
from jobwire.checks import Seconds, seconds
from jobwire.dashboard import forms, live
from jobwire.dashboard.actions import described, record
from jobwire.dashboard.board import Board, Call, Where
from jobwire.dashboard.callers import Auth, TrustedHeader, caller_of
from jobwire.dashboard.drawings import Draw, Drawings
from jobwire.dashboard.headers import SafeHeaders
from jobwire.dashboard.pages import (
    act,
    campaign,
    campaign_act,
    campaigns,
    events,
    failures,
    flow,
    health,
    history,
    job,
    jobs,
    overview,
    progress,
    queue,
    schedules,
    unanswered,
    workers,
)
from jobwire.dashboard.render import STATIC, View, page
from jobwire.dashboard.store import NoSuchQueue
from jobwire.errors import InvalidOption, JobwireError, NotSupported, StoreUnavailable
from jobwire.redact import redact as without_passwords
from jobwire.serving.tokens import OPEN, Tokens

_log = logging.getLogger("jobwire.dashboard")
Do = Callable[[Call, Mapping[str, Any]], Awaitable[Response]]
Respond = Callable[[Request], Awaitable[Response]]

PAGES: Mapping[str, Draw] = {
    "/": overview.draw,
    "/queue": queue.draw,
    "/jobs": jobs.draw,
    "/job": job.draw,
    "/flow": flow.draw,
    "/failures": failures.draw,
    "/progress": progress.draw,
    "/schedules": schedules.draw,
    "/workers": workers.draw,
    "/events": events.draw,
    "/campaigns": campaigns.draw,
    "/campaign": campaign.draw,
    "/history": history.draw,
}
CHANGES: Mapping[str, Do] = {
    "/preview": act.preview,
    "/act": act.act,
    "/pause": act.pause,
    "/resume": act.resume,
    "/limits": act.limits,
    "/campaign-preview": campaign_act.preview,
    "/campaign-act": campaign_act.act,
}


def dashboard(
    stores: Mapping[str, Where],
    *,
    allow_actions: bool = False,
    auth: Auth = None,
    redact: Iterable[str] = (),
    timeout: Seconds = 3.0,
    lake: str | None = None,
) -> Starlette:
    """Returns the dashboard as an ASGI application, to be served by itself or mounted in another.

    `stores` are URLs by name, or connections that the caller opens and closes. A plain URL of PostgreSQL, or an open
    CampaignService, is a database of campaigns. Without `allow_actions` it only reads. `auth` is Tokens, or a
    TrustedHeader that a proxy sets. With None everyone who reaches it is an admin: only behind a check of your own.
    `redact` are patterns of names of fields whose values are hidden, beside passwords, tokens and the like. A store
    must answer within `timeout` seconds; otherwise pages show its last figures. `lake` is a folder or URI of the
    pipeline's tables, for the history.
    """
    given: Any = auth
    if given is not None and not isinstance(given, (Tokens, TrustedHeader)):
        raise InvalidOption("auth", type(given).__name__, "must be Tokens, a TrustedHeader or None")
    if isinstance(auth, Tokens) and not len(auth):
        raise InvalidOption("auth", auth, "must have at least one token")
    if not stores:
        raise InvalidOption("stores", stores, "must name at least one store")
    board = Board(
        {checks.text("stores", name): where for name, where in stores.items()},
        allow_actions=checks.yes_or_no("allow_actions", allow_actions),
        auth=auth,
        redact=redact,
        timeout=seconds("timeout", timeout, minimum=0.05),
        lake=None if lake is None else checks.text("lake", lake),
    )

    drawings = Drawings()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        board.start()
        try:
            yield
        finally:
            drawings.close()
            await board.close()

    routes = [
        *(Route(path, _page(board, draw, drawings)) for path, draw in PAGES.items()),
        *(Route(path, _change(board, do), methods=["POST"]) for path, do in CHANGES.items()),
        Route("/health", _health(board, _page(board, health.draw, drawings))),
        Route("/static/{name}", _static),
        Route("/{anything:path}", _page(board, _nothing, drawings)),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, middleware=[Middleware(SafeHeaders)])
    app.state.board = board
    return app


def _page(board: Board, draw: Draw, drawings: Drawings) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        if draw is overview.draw and not request.url.path.endswith("/"):
            return RedirectResponse(f"{request.scope.get('root_path', '')}/")
        return await _with_caller(board, request, lambda call: _drawn(call, draw, drawings))

    return respond


async def _drawn(call: Call, draw: Draw, drawings: Drawings) -> Response:
    if "text/event-stream" in call.request.headers.get("accept", ""):
        watched = [one for one in call.board.watchable if call.given("store") in ("", one.name)]
        return live.stream(call, lambda shared: _attempted(shared, draw), watched, drawings)
    return page(await _attempted(call, draw), call)


async def _attempted(call: Call, draw: Draw) -> View:
    """Returns the view, or one that states why there is none."""
    try:
        return await draw(call)
    except HTTPException as error:
        return _problem(str(error.detail), error.status_code)
    except NoSuchQueue as missing:
        return _problem(f"Store {call.given('store')} has no queue {missing.args[0]!r}.", 404)
    except InvalidOption as error:
        return _problem(without_passwords(str(error)), 400)
    except StoreUnavailable as error:
        sentence = f"The store can't be used: {without_passwords(str(error))}"
        return unanswered.view(call, sentence) or _problem(sentence, 503)
    except JobwireError as error:
        return _problem(without_passwords(str(error)), 409)


def _change(board: Board, do: Do) -> Callable[[Request], Awaitable[Response]]:
    async def checked(call: Call) -> Response:
        refusal: list[View] = []

        async def attempt(_: Call) -> View:
            fields: Mapping[str, Sequence[str]] = {}
            try:
                fields = await forms.checked_form(call.request, call.caller)
                done.append(await do(call, fields))
            except (HTTPException, NoSuchQueue, InvalidOption, NotSupported) as error:
                _record_refusal(call, fields, error)
                raise
            return View("problem.html", "")

        done: list[Response] = []
        refusal.append(await _attempted(call, attempt))
        return done[0] if done else page(refusal[0], call)

    async def respond(request: Request) -> Response:
        return await _with_caller(board, request, checked)

    return respond


def _record_refusal(call: Call, fields: Mapping[str, Sequence[str]], error: Exception) -> None:
    """Writes to the audit log that something was not done. Actions that the store refuses write it themselves."""
    named = {name: fields[name][0] for name in ("store", "queue", "id") if fields.get(name)}
    what = f"{call.request.url.path.rpartition('/')[2]} {' '.join(fields.get('verb', ())[:1])[:20]!r}"
    reason = str(error.detail) if isinstance(error, HTTPException) else without_passwords(str(error))
    record(call.caller, what, described(named), f"refused: {reason[:500]}")


async def _with_caller(board: Board, request: Request, respond: Callable[[Call], Awaitable[Response]]) -> Response:
    """Answers for a caller who may read. Gives the browser its cookie if it has none."""
    board.start()
    caller = caller_of(request, board.auth)
    cookie = forms.cookie_of(request)
    if caller is None:
        call = Call(board, request, OPEN, forms.new_cookie())
        refusal = page(View("refused.html", "This dashboard asks who you are", status=401), call)
        if isinstance(board.auth, Tokens):
            refusal.headers["WWW-Authenticate"] = 'Basic realm="jobwire", charset="UTF-8"'
        return refusal
    call = Call(board, request, caller, cookie or forms.new_cookie())
    response = await respond(call)
    if cookie is None:
        forms.set_cookie(request, response, call.cookie)
    return response


def _health(board: Board, shown: Respond) -> Respond:
    """Answers programs with JSON, and browsers that may read with a page."""

    async def respond(request: Request) -> Response:
        board.start()
        accepted = request.headers.get("accept", "")
        if ("text/html" in accepted or "event-stream" in accepted) and caller_of(request, board.auth) is not None:
            return await shown(request)
        return await health.answer(board, known=caller_of(request, board.auth) is not None)

    return respond


async def _static(request: Request) -> Response:
    found = STATIC.get(request.path_params["name"])
    if found is None:
        return Response(status_code=404)
    content, kind = found
    return Response(content, media_type=kind, headers={"Cache-Control": "public, max-age=31536000, immutable"})


async def _nothing(_: Call) -> View:
    return _problem("There is no such page.", 404)


def _problem(sentence: str, status: int) -> View:
    return View("problem.html", sentence, status=status)
