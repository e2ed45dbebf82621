"""A MongoDB server: a replica set of one member, since change streams and transactions need a replica set."""

from __future__ import annotations

import importlib.util
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobwire.embedded import binaries
from jobwire.embedded.errors import EmbeddedFailed, EmbeddedUnavailable
from jobwire.embedded.ownership import Account, make_data_folder, secret

if TYPE_CHECKING:
    from pymongo import MongoClient
    from pymongo.errors import OperationFailure

REPLICA_SET = "rs0"
_USER = "jobwire"
_PASSWORD = "password"  # noqa: S105 - the name of its file
_KEY = "key"
_AUTHENTICATION_FAILED = 18
_ALREADY_INITIALIZED = 23
_NOT_YET_INITIALIZED = 94
_INVALID_REPLICA_SET_CONFIG = 93


@dataclass(frozen=True)
class Mongo:
    """One member, whose user `jobwire` has a random password. Durable: a write acknowledged by the majority, MongoDB's
    default, is in the journal on disk."""

    durable: bool = True
    stop_signal = signal.SIGTERM
    ports = 1

    @property
    def name(self) -> str:
        return "mongo" if self.durable else "mongo-throwaway"

    def check(self) -> None:
        binaries.MONGO.find()
        if importlib.util.find_spec("pymongo") is None:
            raise EmbeddedUnavailable(
                "An embedded MongoDB needs its driver to form the replica set: pip install 'jobwire[embedded,mongo]'"
            )

    def prepare(self, folder: Path, account: Account | None) -> None:
        make_data_folder(folder / "data", account)
        secret(folder / _KEY)
        secret(folder / _PASSWORD)

    def command(self, folder: Path, ports: tuple[int, ...]) -> list[str]:
        return [
            *(str(binaries.MONGO.find()), "--bind_ip", "127.0.0.1", "--port", str(ports[0]), "--nounixsocket"),
            *("--dbpath", str(folder / "data"), "--replSet", REPLICA_SET, "--keyFile", str(folder / _KEY)),
            # Every connection hashes the password this often. A random password does not need a slow hash.
            *("--setParameter", "scramSHA256IterationCount=5000"),
            *("--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "128"),
            # Otherwise an empty server already takes 300 MB of disk: three journal files of 100 MB, made in advance.
            *("--wiredTigerEngineConfigString", "log=(file_max=16MB,prealloc=false)"),
            *("--setParameter", "diagnosticDataCollectionEnabled=false"),
            # A primary without secondaries has none to wait for when it stops.
            *("--setParameter", "shutdownTimeoutMillisForSignaledShutdown=100"),
        ]

    def ready(self, folder: Path, ports: tuple[int, ...], pid: int) -> bool:
        try:
            socket.create_connection(("127.0.0.1", ports[0]), 1.0).close()
        except OSError:
            return False
        from pymongo import MongoClient  # noqa: PLC0415 - the driver is another extra
        from pymongo.errors import AutoReconnect, OperationFailure  # noqa: PLC0415

        host = f"127.0.0.1:{ports[0]}"
        client: MongoClient[dict[str, Any]] = MongoClient(
            # Short limits: another program may have taken the port and never answer, while our server has ended.
            host,
            directConnection=True,
            serverSelectionTimeoutMS=1000,
            connectTimeoutMS=1000,
            # The key of the set gives superuser rights, also to data that was made without passwords.
            username="__system",
            password=secret(folder / _KEY),
            authSource="local",
            authMechanism="SCRAM-SHA-256",
        )
        with client, suppress(AutoReconnect):  # the server closes connections when its role changes
            if client.admin.command("hello").get("isWritablePrimary"):
                self._let_in(client, self.url(folder, ports), secret(folder / _PASSWORD))
                return True
            try:
                client.admin.command("replSetGetStatus")
            except OperationFailure as error:
                self._set_up(client, host, error)
        return False

    def _let_in(self, client: MongoClient[dict[str, Any]], url: str, password: str) -> None:
        """Creates the user of the URL, or sets its password to the one in the file, unless it can log in already."""
        from pymongo import MongoClient  # noqa: PLC0415 - the driver is another extra
        from pymongo.errors import OperationFailure  # noqa: PLC0415

        with MongoClient[dict[str, Any]](url, serverSelectionTimeoutMS=1000) as user:
            try:
                user.admin.command("ping")
            except OperationFailure as refused:
                if refused.code != _AUTHENTICATION_FAILED:
                    raise
            else:
                return
        known = client.admin.command("usersInfo", _USER)["users"]
        verb = "updateUser" if known else "createUser"
        client.admin.command(verb, _USER, pwd=password, roles=["root"], mechanisms=["SCRAM-SHA-256"])

    def _set_up(self, client: MongoClient[dict[str, Any]], host: str, trouble: OperationFailure) -> None:
        if trouble.code == _NOT_YET_INITIALIZED:
            # A set that is still loading its configuration also gives this error, and then refuses a second one.
            answer = client.admin.command({"replSetInitiate": self._configuration(host)}, check=False)
            if not answer["ok"] and answer.get("code") != _ALREADY_INITIALIZED:
                raise EmbeddedFailed(f"MongoDB does not form its replica set: {answer.get('errmsg')}")
        elif trouble.code == _INVALID_REPLICA_SET_CONFIG:
            _move(client, host)
        else:
            raise trouble

    def _configuration(self, host: str) -> dict[str, Any]:
        return {
            "_id": REPLICA_SET,
            "members": [{"_id": 0, "host": host}],
            "writeConcernMajorityJournalDefault": self.durable,
        }

    def url(self, folder: Path, ports: tuple[int, ...]) -> str:
        login = f"{_USER}:{secret(folder / _PASSWORD)}"
        options = f"authSource=admin&replicaSet={REPLICA_SET}&directConnection=true"
        return f"mongodb://{login}@127.0.0.1:{ports[0]}/?{options}"


def _move(client: MongoClient[dict[str, Any]], host: str) -> None:
    """Sets the new address of the only member. After a change of port it does not find itself in the set."""
    stored = client.local["system.replset"].find_one({})
    assert stored is not None  # noqa: S101 - the server has just reported that it has a configuration
    stored["members"][0]["host"] = host
    stored["version"] += 1
    client.admin.command({"replSetReconfig": stored, "force": True})
