"""Checks requests that change something: they must come from a page of the dashboard itself.

Two checks, each of which is enough against a page of another origin. The browser's own word for the origin of the
request must be this one. And the form must have a token that belongs to a cookie of this browser, which another origin
can neither read nor make. The cookie holds a random text and nothing about the user.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from jobwire.serving.tokens import Caller

COOKIE = "jobwire_form"
FIELD = "form_token"
BODY_LIMIT = 256 * 1024
MOST_FIELDS = 2000
_SHAPE = re.compile(r"[A-Za-z0-9_-]{43}")


def form_token(cookie: str, caller: Caller) -> str:
    """Returns the token of the forms of one browser and caller."""
    return hmac.new(
        cookie.encode(), f"{caller.name}\n{caller.role}".encode("utf-8", "replace"), hashlib.sha256
    ).hexdigest()


def cookie_of(request: Request) -> str | None:
    """Returns the random text of this browser's cookie, or None if there is none."""
    found = request.cookies.get(COOKIE, "")
    return found if _SHAPE.fullmatch(found) else None


def new_cookie() -> str:
    return secrets.token_urlsafe(32)


def set_cookie(request: Request, response: Response, value: str) -> None:
    """Gives the browser its cookie, which only requests from our own pages carry."""
    path = f"{request.scope.get('root_path', '')}/"
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, value, path=path, secure=secure, httponly=True, samesite="strict")


async def checked_form(request: Request, caller: Caller) -> Mapping[str, Sequence[str]]:
    """Returns the fields of a form that a page of ours has sent. Raises HTTPException 403, 413 or 400."""
    if not from_our_page(request):
        raise HTTPException(403, "The request does not come from a page of this dashboard.")
    fields = await _fields(request)
    cookie = cookie_of(request)
    given = fields.get(FIELD, [""])[0]
    if cookie is None or not hmac.compare_digest(form_token(cookie, caller).encode(), given.encode("utf-8", "replace")):
        raise HTTPException(403, "The page that you sent is out of date. Go back, reload it and try again.")
    return fields


def from_our_page(request: Request) -> bool:
    """Returns True if the browser names our own origin as that of the request. The scheme is not compared: a proxy may
    add TLS."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site != "same-origin":
        return False
    if origin is not None:
        return urlsplit(origin).netloc == request.headers.get("host", "") != ""
    return site == "same-origin"


async def _fields(request: Request) -> dict[str, list[str]]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise HTTPException(400, "The request is not a form.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY_LIMIT:
            raise HTTPException(413, "The form is too large: choose fewer jobs.")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise HTTPException(400, "The form can't be read.") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return fields
