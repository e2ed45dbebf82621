"""The warm Spark of `jobwire pipeline serve`, and the file by which commands in the same folder find it.

    .jobwire/serve.json     address and token of the server, the process that runs it, and the Python that it has

The server is Spark Connect inside the driver of a local Spark: it ends with the process that started it, however that
ends. It listens on loopback, and the token keeps other users of the machine out. A file whose server is gone, or is of
another release or another Python, is ignored with a sentence, and the command starts a Spark of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from jobwire.errors import JobwireError
from jobwire.pipeline.spark.session import spark_session

FILE = Path(".jobwire") / "serve.json"
LOCAL = "local[*,4]"
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 the name of a variable
_PATIENCE = 2.0
_NOT_WITH = ("SPARK_REMOTE", "MASTER", "PYSPARK_GATEWAY_PORT")
"""Variables that name a Spark, as --master does."""


class NotServed(JobwireError):
    """The Spark server does not answer."""


@dataclass(frozen=True)
class Served:
    """A server as its file describes it."""

    port: int
    token: str
    process: int
    host: str
    release: str
    python: str

    @property
    def url(self) -> str:
        """The URL for Spark Connect. Spark sends a token without TLS to `localhost` only."""
        return f"sc://localhost:{self.port}/;token={self.token}"


@contextmanager
def serving(
    master: str | None = None, conf: Mapping[str, str] | None = None, *, file: Path = FILE
) -> Generator[Served]:
    """Runs a server inside the block. Refuses to if one is there already, or if packages are missing."""
    if find_spec("grpc") is None:
        raise JobwireError("a Spark server needs Spark Connect: pip install 'pyspark[connect]'")
    with suppress(NotServed):
        if (there := found(file)) is not None:
            raise JobwireError(f"a Spark server runs already in this folder (process {there.process})")
    served = Served(_free_port(), secrets.token_hex(16), os.getpid(), socket.gethostname(), release(), sys.executable)
    os.environ[_TOKEN] = served.token  # not a setting, which a list of processes would show
    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(served.port),
    }
    spark = spark_session(master, {**settings, **(conf or {})}, local=LOCAL)
    try:
        _write(file, served)
        try:
            yield served
        finally:
            file.unlink(missing_ok=True)
    finally:
        spark.stop()


def found(file: Path = FILE) -> Served | None:
    """Returns the server that this folder's file names, or None if there is no file. Raises NotServed if the server
    can't be used."""
    try:
        served = Served(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise NotServed(f"{file} can't be read ({error})") from None
    if served.host != socket.gethostname() or not _alive(served.process):
        raise NotServed(f"{file} names a Spark server that has ended")
    if (served.release, served.python) != (release(), sys.executable):
        raise NotServed(f"{file} names a Spark server of another release or another Python")
    try:
        socket.create_connection(("127.0.0.1", served.port), _PATIENCE).close()
    except OSError:
        raise NotServed(f"{file} names a Spark server that does not answer") from None
    return served


def is_wanted(master: str | None, conf: Mapping[str, str]) -> bool:
    """Returns whether a command may use a server: neither its options nor its environment ask for another Spark."""
    return master is None and not conf and not any(name in os.environ for name in _NOT_WITH)


def _write(file: Path, served: Served) -> None:
    """Writes the file for this user alone, in one step."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(asdict(served), out)
    beside.replace(file)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def release() -> str:
    """Returns the releases that client and server must share."""
    return f"jobwire {metadata.version('jobwire')}, pyspark {metadata.version('pyspark')}"
