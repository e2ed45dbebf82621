"""pg-boss on PostgreSQL: queues shared with Node pg-boss 11.1 to 12.38 (schema 26 to 46).

`Boss` offers what only pg-boss has. `install` makes the schema on an empty database.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jobwire.boundary import Backend
from jobwire.urls import Address

if TYPE_CHECKING:
    from jobwire.backends.pgboss.connection.schema_install import install
    from jobwire.backends.pgboss.native.boss import Boss, QueueInfo
    from jobwire.backends.pgboss.native.flows import GraphJob

__all__ = ["Boss", "GraphJob", "QueueInfo", "install", "open_backend"]

_HOMES = {
    "Boss": "native.boss",
    "QueueInfo": "native.boss",
    "GraphJob": "native.flows",
    "install": "connection.schema_install",
}


def open_backend(address: Address) -> Backend:
    """Returns the backend of a `pgboss+…` address. Connects to nothing."""
    from jobwire.backends.pgboss.backend import PgBossBackend  # noqa: PLC0415 - it needs the driver, the rules do not

    return PgBossBackend(address)


def __getattr__(name: str) -> Any:
    """Imports the names above when they are first used: they need the driver."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
