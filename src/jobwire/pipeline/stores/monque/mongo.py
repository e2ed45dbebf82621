"""A blocking client, with the collection of jobs and jobwire's own beside it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, cast

from pymongo import MongoClient
from pymongo import errors as driver
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.read_concern import ReadConcern

from jobwire.backends.monque.address import collection_address
from jobwire.backends.monque.connection.errors import reaching
from jobwire.backends.monque.connection.side_version import VERSION_ID
from jobwire.backends.monque.connection.store import READABLE
from jobwire.errors import InvalidOption
from jobwire.urls import Address

Document = dict[str, Any]

# For what the URL leaves open. A reader fails sooner than a worker: Spark runs its task again.
_DEFAULTS: Mapping[str, Any] = {"w": "majority", "serverSelectionTimeoutMS": 10_000, "appName": "jobwire-pipeline"}


class Collections:
    """Connects to the server when it is created."""

    def __init__(self, address: Address) -> None:
        self.address = collection_address(address)
        self.where = self.address.where
        given = self.address.driver_options
        defaults = {key: value for key, value in _DEFAULTS.items() if key.lower() not in given}
        try:
            self.client: MongoClient[Document] = MongoClient(self.address.driver_url, tz_aware=True, **defaults)
        except (driver.ConfigurationError, driver.InvalidURI, ValueError) as error:
            raise InvalidOption("url", self.where, str(error)) from None
        try:
            with self.reaching():
                hello = self.client.admin.command("hello")
        except BaseException:
            self.client.close()
            raise
        self.streams = "setName" in hello or hello.get("msg") == "isdbgrid"
        """Returns whether the server has change streams: a replica set or a sharded cluster."""

    @property
    def database(self) -> Database[Document]:
        return self.client.get_database(self.address.database, codec_options=READABLE)

    @property
    def jobs(self) -> Collection[Document]:
        return self.database[self.address.collection]

    @property
    def side(self) -> Collection[Document]:
        return self.database[self.address.side]

    def notes(self, keys: list[Any]) -> dict[str, Document]:
        """Returns jobwire's side data of these `_id`s, by their texts: an `_id` may be of any type."""
        return {str(note["_id"]): note for note in self.side.find({"_id": {"$in": keys}})}

    def has_notes(self) -> bool:
        return self.side.find_one({"_id": {"$ne": VERSION_ID}}, {"_id": 1}) is not None

    def clock(self) -> datetime:
        """Returns the server's time."""
        return cast(datetime, self.client.admin.command("hello")["localTime"])

    def majority_time(self) -> tuple[int, int]:
        """Returns the newest time that the replica set can't roll back: seconds, and a count within the second."""
        with self.client.start_session() as session:
            jobs = self.jobs.with_options(read_concern=ReadConcern("majority"))
            jobs.find_one({"_id": None}, {"_id": 1}, session=session)
            reached = session.operation_time
        if reached is None:
            raise driver.OperationFailure("the server returned no operation time")
        return reached.time, reached.inc

    def reaching(self) -> AbstractContextManager[None]:
        return reaching(self.where)

    def close(self) -> None:
        self.client.close()
