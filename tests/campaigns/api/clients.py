"""Clients of the API, with the token of a role or without one."""

from __future__ import annotations

from typing import Any

import httpx

from jobwire.campaigns.api import Role, Token, Tokens

SECRETS = {role: f"the-secret-of-the-{role}-of-tests" for role in Role}
TOKENS = Tokens([Token(f"{role}-of-tests", role, secret) for role, secret in SECRETS.items()])
LOWEST = {
    ("GET", "/campaigns"): Role.VIEWER,
    ("GET", "/campaigns/{campaign}"): Role.VIEWER,
    ("GET", "/campaigns/{campaign}/report"): Role.VIEWER,
    ("GET", "/campaigns/{campaign}/deliveries"): Role.VIEWER,
    ("GET", "/campaigns/{campaign}/preview"): Role.VIEWER,
    ("GET", "/channels"): Role.VIEWER,
    ("GET", "/batches"): Role.VIEWER,
    ("GET", "/templates"): Role.VIEWER,
    ("POST", "/campaigns"): Role.OPERATOR,
    ("POST", "/campaigns/{campaign}/start"): Role.OPERATOR,
    ("POST", "/campaigns/{campaign}/pause"): Role.OPERATOR,
    ("POST", "/campaigns/{campaign}/resume"): Role.OPERATOR,
    ("POST", "/campaigns/{campaign}/cancel"): Role.OPERATOR,
    ("PUT", "/campaigns/{campaign}/rate"): Role.OPERATOR,
    ("POST", "/channels/import"): Role.ADMIN,
    ("POST", "/channels/{channel}/activate"): Role.ADMIN,
    ("POST", "/templates"): Role.ADMIN,
}
"""Every request and the lowest role that it needs."""


def client_of(app: Any, role: Role | None = None, **options: Any) -> httpx.AsyncClient:
    """Returns a client of an application, with the token of a role."""
    headers = {"Authorization": f"Bearer {SECRETS[role]}"} if role is not None else {}
    transport = httpx.ASGITransport(app, **options)
    return httpx.AsyncClient(transport=transport, base_url="http://campaigns.test", headers=headers)
