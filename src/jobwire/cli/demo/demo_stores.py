"""The protocols that the demo shows, on embedded servers."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from jobwire.cli.demo.demo_store import DemoStore
from jobwire.protocols import PROTOCOLS, KnownProtocol


def demo_stores(folder: Path, *, emptied: bool = True) -> list[DemoStore]:
    """Returns a store for each protocol that has an embedded server."""
    return [
        DemoStore(one.slug, one.embedded_server, embedded_url(one.slug, folder) + _options(one), emptied=emptied)
        for one in PROTOCOLS.values()
        if one.embedded_server
    ]


def _options(protocol: KnownProtocol) -> str:
    """Returns `?max_retries=3` for a protocol whose attempts are set per instance: its default is ten, minutes
    apart."""
    return "?max_retries=3" if "max_retries" in protocol.url_options else ""


def embedded_url(protocol: str, folder: Path) -> str:
    """Returns the URL of an embedded server in a folder.

    >>> embedded_url("bullmq", Path("my data"))
    'bullmq+embedded:my%20data'
    """
    return f"{protocol}+embedded:{quote(str(folder))}"
