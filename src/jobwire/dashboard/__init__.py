"""The dashboard: all queues of all stores, for operators. It needs `pip install 'jobwire[web]'`.

    from jobwire.dashboard import dashboard

    app = dashboard({"prod": "bullmq+redis://host:6379/0"}, auth=Tokens([Token("ann", "operator", SECRET)]))

`app` is an ASGI application: serve it by itself (`jobwire dashboard`), or mount it in another. See docs/dashboard.md.
"""

from __future__ import annotations

from jobwire.errors import MissingExtra

try:
    from jobwire.dashboard.app import dashboard
    from jobwire.dashboard.callers import TrustedHeader
    from jobwire.serving.tokens import Caller, Role, Token, Tokens
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("jinja2", "markupsafe", "starlette"):
        raise
    raise MissingExtra("the dashboard", "web") from None

__all__ = ["Caller", "Role", "Token", "Tokens", "TrustedHeader", "dashboard"]
