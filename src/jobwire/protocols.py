"""The protocols that jobwire speaks: what is known of each before its backend is loaded.

The only place that lists them. A protocol is named by its slug, in URLs and in the name of its package under
`jobwire.backends`; its display name is for people and is never compared.
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
    """Options of ours in its URLs; the first says where in the store the queues are."""
    takes_client: bool = False
    """Its address can be that of a driver's client."""


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
            # All but the first: Monque leaves them to the configuration of its instances instead of storing them.
            ("collection", "tz", "max_retries", "create_indexes"),
        ),
        KnownProtocol("pgboss", "pg-boss", "postgres", "PostgreSQL", ("postgresql", "embedded"), ("schema",)),
        KnownProtocol("memory", "memory", url_options=("like",)),
    )
}
