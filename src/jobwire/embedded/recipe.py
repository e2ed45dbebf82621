"""What the machinery has to know about one kind of server."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Protocol

from jobwire.embedded.privileges import Account


class Recipe(Protocol):
    """How to prepare, start, probe and stop one kind of server. A recipe holds no state of a running server."""

    @property
    def name(self) -> str:
        """The subfolder for data, locks and logs. Profiles that must not share data have different names."""
        ...

    @property
    def ports(self) -> int:
        """How many loopback ports a server takes."""
        ...

    @property
    def stop_signal(self) -> signal.Signals:
        """The signal that makes the server write what it holds and leave at once, clients or not."""
        ...

    def check(self) -> None:
        """Raise `EmbeddedUnavailable` if the server can't run on this machine."""
        ...

    def account(self, folder: Path) -> Account | None:
        """The account to run under, or None to stay who we are."""
        ...

    def prepare(self, folder: Path) -> None:
        """Make the data folder ready. Repeatable: a crash half way leaves nothing that a second call trips over."""
        ...

    def command(self, folder: Path, ports: tuple[int, ...]) -> list[str]:
        """The command line that runs the server in the foreground, logging to its standard output."""
        ...

    def ready(self, folder: Path, ports: tuple[int, ...], pid: int) -> bool:
        """Whether process `pid` takes reads and writes. Called again and again until it says yes."""
        ...

    def url(self, folder: Path, ports: tuple[int, ...]) -> str:
        """The driver's URL."""
        ...
