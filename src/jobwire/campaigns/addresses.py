"""Recognises the URL of the campaigns' database: a plain PostgreSQL URL, without a protocol of queues."""

from __future__ import annotations


def is_database(url: str) -> bool:
    """Returns whether a URL is a plain one of PostgreSQL.

    >>> is_database("postgresql://localhost/app"), is_database("pgboss+postgresql://localhost/app")
    (True, False)
    """
    return url.lower().startswith(("postgresql://", "postgres://"))
