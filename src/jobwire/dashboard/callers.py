"""Finds out who makes a request: by a token, or by a header that a proxy sets."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from starlette.requests import Request

from jobwire.errors import InvalidOption
from jobwire.serving.tokens import OPEN, Caller, Role, Tokens
from jobwire.spelling import closest

_NAME = re.compile(r"[A-Za-z0-9-]+")
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class TrustedHeader:
    """A header with the user's name that a proxy sets after it has checked who asks. Everyone has the same role.

    The proxy must delete the header from the requests that it gets, and nothing but the proxy may reach the dashboard.
    """

    name: str
    role: Role = Role.VIEWER

    def __init__(self, name: str, role: str = Role.VIEWER) -> None:
        if not _NAME.fullmatch(name):
            raise InvalidOption("header", name, "must be the name of an HTTP header, such as X-Forwarded-User")
        if role not in list(Role):
            near = closest(str(role), list(Role))
            hint = f"; did you mean {near}?" if near else ""
            raise InvalidOption("role", role, f"must be viewer, operator or admin{hint}")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "role", Role(role))


Auth = Tokens | TrustedHeader | None


def caller_of(request: Request, auth: Auth) -> Caller | None:
    """Returns the caller, or None if the request does not show who it is."""
    if auth is None:
        return OPEN
    if isinstance(auth, TrustedHeader):
        name = request.headers.get(auth.name, "").strip()
        return Caller(name[:_LONGEST_NAME], auth.role) if name else None
    scheme, _, given = request.headers.get("authorization", "").strip().partition(" ")
    match scheme.lower():
        case "bearer":
            return auth.caller_of(given.strip())
        case "basic":
            name, secret = _name_and_password(given)
            caller = auth.caller_of(secret)
            return caller if caller is not None and name in ("", caller.name) else None
        case _:
            return None


def _name_and_password(given: str) -> tuple[str, str]:
    try:
        name, _, secret = base64.b64decode(given.strip(), validate=True).decode("utf-8").partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return name, secret
