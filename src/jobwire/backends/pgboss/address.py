"""The parameters of a connection: those of the URL, and defaults for the others."""

from __future__ import annotations

from typing import Any

from psycopg.conninfo import conninfo_to_dict

_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "fallback_application_name": "jobwire",
    # A server that is gone without closing the connection is noticed after 20 s when the connection is idle (10 s and
    # two probes), after 15 s when bytes are on their way to it.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 15_000,
}


def parameters(url: str) -> dict[str, Any]:
    """Returns the parameters of a connection. A parameter in the URL replaces the default.

    >>> parameters("postgresql://db/app?connect_timeout=3")["connect_timeout"]
    '3'
    """
    return _DEFAULTS | conninfo_to_dict(url)
