"""What the machinery has to know about one kind of server."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Protocol

from jobwire.embedded.ownership import Account


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

    def prepare(self, folder: Path, account: Account | None) -> None:
        """Make the folder `data` and the password ready for a server that runs under the account (None: as we do).

        Repeatable: a crash half way leaves nothing that a second call trips over. Data and passwords of a folder that
        an older jobwire has made are brought up to date.
        """
        ...

    def command(self, folder: Path, ports: tuple[int, ...]) -> list[str]:
        """The command line that runs the server in the foreground, logging to its standard output."""
        ...

    def ready(self, folder: Path, ports: tuple[int, ...], pid: int) -> bool:
        """Whether process `pid` takes reads and writes. Called again and again until it says yes.

        Another user's program may have the port meanwhile: it must not be sent the password.
        """
        ...

    def url(self, folder: Path, ports: tuple[int, ...]) -> str:
        """The driver's URL, with the password."""
        ...
