"""Checks the caller of a request before anything else of it is read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from jobwire.serving.tokens import OPEN, Caller, Role, Tokens

logger = logging.getLogger("jobwire.campaigns.api")

ROLE = "x-role"
"""The key of the needed role in a route's part of the OpenAPI document."""
VIEWER = {ROLE: Role.VIEWER.value}
OPERATOR = {ROLE: Role.OPERATOR.value}
ADMIN = {ROLE: Role.ADMIN.value}


class GuardedRoute(APIRoute):
    """A route for callers of a role, which `openapi_extra` names. FastAPI would read the body before it checks
    dependencies: here a request without a token ends before that."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        needed = Role((self.openapi_extra or {})[ROLE])

        async def check_first(request: Request) -> Response:
            caller = _checked(request.app.state.tokens, request.headers.get("authorization"), needed)
            request.state.caller = caller
            if needed is not Role.VIEWER and caller.name is not None:
                logger.info("%s (%s) asks for %s %r", caller.name, caller.role, request.method, request.scope["path"])
            return await handle(request)

        return check_first


def caller_of(request: Request) -> Caller:
    """Returns the caller of a request that was let through."""
    return request.state.caller


def _checked(tokens: Tokens | None, header: str | None, needed: Role) -> Caller:
    if tokens is None:
        return OPEN
    scheme, _, secret = (header or "").strip().partition(" ")
    caller = tokens.caller_of(secret.strip()) if scheme.lower() == "bearer" else None
    if caller is None:
        problem = "a bearer token is needed" if header is None else "the token is unknown"
        raise HTTPException(401, problem, {"WWW-Authenticate": "Bearer"})
    if not caller.role.includes(needed):
        raise HTTPException(403, f"this needs the role {needed}; the token {caller.name!r} has the role {caller.role}")
    return caller
