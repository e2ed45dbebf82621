"""The protocols that the demo shows, on embedded servers."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from jobwire.cli.demo.station import Station


def stations(folder: Path) -> list[Station]:
    """A protocol joins the demo here."""
    return [
        Station("bullmq", "Valkey", embedded_url("bullmq", folder)),
        Station("bridgemq", "Valkey", embedded_url("bridgemq", folder)),
        Station("pgboss", "PostgreSQL", embedded_url("pgboss", folder)),
        # Retries are Monque's own, up to ten with growing pauses, unless the URL says otherwise.
        Station("monque", "MongoDB", embedded_url("monque", folder) + "?max_retries=3"),
    ]


def embedded_url(protocol: str, folder: Path) -> str:
    """
    >>> embedded_url("bullmq", Path("my data"))
    'bullmq+embedded:my%20data'
    """
    return f"{protocol}+embedded:{quote(str(folder))}"
