"""Monque on MongoDB, a replica set of one member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pymongo import MongoClient

from faults.case import StoredJob
from faults.holders import holder_of
from faults.kinds import ATTEMPTS
from faults.stores.store import Store
from jobwire import embedded
from jobwire.embedded import Server

_OF_A_CLAIM = ("claimedBy", "lockedAt", "lastHeartbeat", "jobwire")
"""Fields that a finished job does not have. `heartbeatInterval` stays, as it does with the peer."""


class Monque(Store):
    """A database of its own."""

    protocol = "monque"
    native = ("MonqueWorker", {"base_retry_interval": 0.05})

    @staticmethod
    def start(folder: Path) -> Server:
        return embedded.mongo(folder)

    def at(self, server: str) -> str:
        return f"monque+{server.replace('/?', f'/{self.place}?')}&max_retries={ATTEMPTS}"

    @contextmanager
    def client(self) -> Iterator[MongoClient[dict[str, Any]]]:
        with MongoClient[dict[str, Any]](self.server.url, serverSelectionTimeoutMS=60_000, appname="faults") as client:
            yield client

    def residue(self, jobs: Sequence[StoredJob]) -> list[str]:
        known = {job.id for job in jobs}
        with self.client() as client:
            database = client[self.place]
            held = database["monque_jobs"].find({"$or": [{field: {"$ne": None}} for field in _OF_A_CLAIM]})
            found = [f"{one['_id']} has {[field for field in _OF_A_CLAIM if one.get(field)]}" for one in held]
            side = database["monque_jobs_jobwire"].find({"_id": {"$ne": "jobwire:version"}})
            found += [f"side data of {one['_id']}" for one in side if _job_of(one) not in known]
            extra = set(database.list_collection_names()) - {"monque_jobs", "monque_jobs_jobwire"}
            return found + [f"collection {name}" for name in sorted(extra)]

    def connections(self) -> list[str]:
        with self.client() as client:
            operations = list(client.admin.aggregate([{"$currentOp": {"allUsers": True, "idleConnections": True}}]))
        clients = [one for one in operations if one.get("clientMetadata") and one.get("appName") != "faults"]
        held = [(one, holder_of(int(one["client"].rpartition(":")[2]))) for one in clients]
        # The server has connections to itself, by which it watches its replica set.
        own = f"process {self.server.pid}:"
        return [f"{one['desc']}, {one.get('command')}: {holder}" for one, holder in held if not holder.startswith(own)]

    def remove(self) -> None:
        with self.client() as client:
            client.drop_database(self.place)


def _job_of(side: dict[str, Any]) -> str:
    return str(side.get("job", side["_id"]))
