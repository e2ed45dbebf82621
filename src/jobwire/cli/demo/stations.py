"""The protocols that the demo shows, each on a server of its own."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from jobwire.cli.demo.station import Station


def stations(folder: Path) -> list[Station]:
    """A protocol joins the demo here."""
    return [Station("bullmq", "Valkey", embedded_url("bullmq", folder))]


def embedded_url(protocol: str, folder: Path) -> str:
    """
    >>> embedded_url("bullmq", Path("my data"))
    'bullmq+embedded:my%20data'
    """
    return f"{protocol}+embedded:{quote(str(folder))}"
