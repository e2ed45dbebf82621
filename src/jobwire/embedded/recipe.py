"""The interface of a recipe: everything that differs between the kinds of servers."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Protocol

from jobwire.embedded.ownership import Account


class Recipe(Protocol):
    """Prepares, starts, probes and stops one kind of server. A recipe holds no state of a running server."""

    @property
    def name(self) -> str:
        """The subfolder for data, locks and logs. Profiles that must not share data have different names."""
        ...

    @property
    def ports(self) -> int:
        """The number of loopback ports that a server takes."""
        ...

    @property
    def stop_signal(self) -> signal.Signals:
        """The signal that makes the server flush its data and exit at once, even if clients are connected."""
        ...

    def check(self) -> None:
        """Raises `EmbeddedUnavailable` if the server can't run on this machine."""
        ...

    def prepare(self, folder: Path, account: Account | None) -> None:
        """Makes the folder `data` and the password, for a server that runs under the account (None: that of this
        process).

        Repeatable: a second call completes what a crash has interrupted. Data and passwords of a folder that an older
        jobwire has made are updated.
        """
        ...

    def command(self, folder: Path, ports: tuple[int, ...]) -> list[str]:
        """The command line that runs the server in the foreground, logging to its standard output."""
        ...

    def ready(self, folder: Path, ports: tuple[int, ...], pid: int) -> bool:
        """True if process `pid` accepts reads and writes. Called repeatedly until it does.

        Another user's program may have taken the port: it must not be sent the password.
        """
        ...

    def url(self, folder: Path, ports: tuple[int, ...]) -> str:
        """The driver's URL, with the password."""
        ...
