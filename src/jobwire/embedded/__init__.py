"""Real servers without an installation: Valkey, PostgreSQL and MongoDB from Python wheels.

    from jobwire import embedded

    with embedded.valkey() as server:
        print(server.url)                    # redis://:password@127.0.0.1:41237/0

A server belongs to a folder. The first process that asks for it starts it, others that name the same folder join, and
it stops when the last of them has closed it, exited or been killed. Its data stays in the folder; what it acknowledged
survives a kill of its users, of the server, or both. It listens on 127.0.0.1 only, keeps its log in the folder, and is
started again on the same port should it crash.

Every server has a random password, which is in its URL and in files of the folder that only their owner can read. A
server that root starts runs as the owner of its folder, or as `nobody` in a folder of root's.

`durable=False` gives a throwaway server for tests, with data of its own, that is faster and forgets on a crash.

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


def valkey(folder: Path | str = FOLDER, *, durable: bool = True) -> Server:
    """Start or join the Valkey server of a folder."""
    return Server(Valkey(durable), folder)


def postgres(folder: Path | str = FOLDER, *, durable: bool = True) -> Server:
    """Start or join the PostgreSQL server of a folder."""
    return Server(Postgres(durable), folder)


def mongo(folder: Path | str = FOLDER, *, durable: bool = True) -> Server:
    """Start or join the MongoDB server of a folder, a replica set of one."""
    return Server(Mongo(durable), folder)


def valkey_cluster(folder: Path | str = FOLDER, nodes: int = 3, *, durable: bool = True) -> Cluster:
    """Start or join the Valkey cluster of a folder: `nodes` masters that share the slots evenly."""
    return Cluster(folder, nodes, durable)
