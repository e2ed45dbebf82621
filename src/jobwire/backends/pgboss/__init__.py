"""pg-boss on PostgreSQL: queues shared with Node pg-boss 11.1 to 12.38 (schema 26 to 46).

`Boss` reaches what only pg-boss has, `install` makes the schema on an empty database.
"""

from __future__ import annotations

from jobwire.backend import Backend
from jobwire.backends.pgboss.backend import PgBossBackend
from jobwire.backends.pgboss.boss import Boss, QueueInfo
from jobwire.backends.pgboss.flows import FlowJob
from jobwire.backends.pgboss.schema_install import install
from jobwire.urls import Address

__all__ = ["Boss", "FlowJob", "QueueInfo", "install", "open_backend"]


def open_backend(address: Address) -> Backend:
    return PgBossBackend(address)
