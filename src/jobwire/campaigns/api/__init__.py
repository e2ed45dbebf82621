"""The HTTP API of campaigns. It needs `pip install 'jobwire[postgres,web]'`.

    from jobwire.campaigns.api import Token, Tokens, campaign_api

    api = campaign_api("postgresql://localhost/app", tokens=Tokens([Token("ann", "admin", os.environ["ANNS_TOKEN"])]))

`api` is an ASGI application: serve it by itself (`jobwire campaign serve`), or mount it in another. See
docs/campaigns-api.md.
"""

from __future__ import annotations

from jobwire.errors import MissingExtra

try:
    from jobwire.campaigns.api.app import campaign_api
    from jobwire.serving.tokens import Caller, Role, Token, Tokens
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("fastapi", "pydantic", "starlette"):
        raise
    raise MissingExtra("the HTTP API of campaigns", "web") from None

__all__ = ["Caller", "Role", "Token", "Tokens", "campaign_api"]
