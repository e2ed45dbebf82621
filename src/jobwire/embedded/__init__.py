"""Real servers without an installation: Valkey, PostgreSQL and MongoDB from Python wheels.

    from jobwire import embedded

    with embedded.valkey() as server:
        print(server.url)                    # redis://:password@127.0.0.1:41237/0

A server belongs to a folder. The first process that asks for it starts it, others that name the same folder join, and
it stops when the last of them has closed it, exited or been killed. Its data stays in the folder. Acknowledged writes
survive a kill of its users, of the server, or of both. It listens on 127.0.0.1 only, logs to a file in the folder, and
is restarted on the same port if it crashes.

Every server has a random password, which is in its URL and in files of the folder that only their owner can read. A
server that root starts runs as the owner of its folder, or as `nobody` in a folder of root's.

`durable=False` gives a server for tests, with data of its own. It is faster and may lose data in a crash.

The calls block for about a second; from async code use `await asyncio.to_thread(embedded.valkey)`.
"""

from __future__ import annotations

from pathlib import Path

from jobwire.embedded.cluster import Cluster
from jobwire.embedded.errors import EmbeddedFailed, EmbeddedUnavailable
from jobwire.embedded.mongo import Mongo
from jobwire.embedded.postgres import Postgres
from jobwire.embedded.server import Server
from jobwire.embedded.valkey import Valkey

__all__ = [
    "Cluster",
    "EmbeddedFailed",
    "EmbeddedUnavailable",
    "Server",
    "mongo",
    "postgres",
    "valkey",
    "valkey_cluster",
]

FOLDER = ".jobwire"
_RECIPES = {"redis": Valkey, "postgres": Postgres, "mongo": Mongo}


def valkey(folder: Path | str = FOLDER, *, durable: bool = True) -> Server:
    """Starts or joins the Valkey server of a folder."""
    return Server(Valkey(durable), folder)


def postgres(folder: Path | str = FOLDER, *, durable: bool = True) -> Server:
    """Starts or joins the PostgreSQL server of a folder."""
    return Server(Postgres(durable), folder)


def mongo(folder: Path | str = FOLDER, *, durable: bool = True) -> Server:
    """Starts or joins the MongoDB server of a folder, a replica set of one."""
    return Server(Mongo(durable), folder)


def exists(store: str, folder: Path | str = FOLDER) -> bool:
    """Returns True if the folder has the data of a durable server of this kind: redis, postgres or mongo."""
    return (Path(folder) / _RECIPES[store](True).name / "data").is_dir()


def valkey_cluster(folder: Path | str = FOLDER, nodes: int = 3, *, durable: bool = True) -> Cluster:
    """Starts or joins the Valkey cluster of a folder: `nodes` masters that share the slots evenly."""
    return Cluster(folder, nodes, durable)
