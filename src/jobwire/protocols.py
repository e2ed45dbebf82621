"""The registry of protocols, with everything that is needed before a backend is loaded.

The only list of them. A protocol is named by its slug, in URLs and in the name of its package under `jobwire.backends`;
its display name is only for people and is never compared.
"""

from __future__ import annotations

from dataclasses import dataclass

REDIS_TRANSPORTS = ("redis", "rediss", "cluster", "sentinel", "embedded")


@dataclass(frozen=True, slots=True)
class KnownProtocol:
    """One protocol."""

    slug: str
    name: str
    store: str = "store"
    """The kind of store, which is also the extra to install."""
    embedded_server: str = ""
    transports: tuple[str, ...] = ()
    url_options: tuple[str, ...] = ()
    """jobwire's options in the protocol's URLs. The first one names the place of its queues inside a store."""
    takes_client: bool = False
    """True if the address can come from a driver's client."""


PROTOCOLS = {
    one.slug: one
    for one in (
        KnownProtocol("bullmq", "BullMQ", "redis", "Valkey", REDIS_TRANSPORTS, ("prefix",), takes_client=True),
        KnownProtocol("bridgemq", "BridgeMQ", "redis", "Valkey", REDIS_TRANSPORTS, ("namespace",), takes_client=True),
        KnownProtocol(
            "monque",
            "Monque",
            "mongo",
            "MongoDB",
            ("mongodb", "mongodb+srv", "embedded"),
            # All but the first: Monque keeps these in the configuration of its instances and does not store them.
            ("collection", "tz", "max_retries", "create_indexes"),
        ),
        KnownProtocol("pgboss", "pg-boss", "postgres", "PostgreSQL", ("postgresql", "embedded"), ("schema",)),
        KnownProtocol("memory", "memory", url_options=("like",)),
    )
}
