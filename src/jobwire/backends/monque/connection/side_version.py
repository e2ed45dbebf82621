"""The version of a collection's side data: one document in `<collection>_jobwire`. It covers that collection and the
sub-documents `jobwire` of jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from pymongo import ReadPreference
from pymongo import errors as driver

from jobwire.backends.side_version import FIRST
from jobwire.errors import StoreUnavailable

if TYPE_CHECKING:
    from jobwire.backends.monque.connection.store import Store

VERSION_ID = "jobwire:version"
"""The `_id` of the document. It has no `name`, so it belongs to no queue."""
Step = Callable[["Store"], Awaitable[None]]
STEPS: Sequence[Step] = ()
"""Functions that lead from one version to the next. Two processes may take the same step at once, and a step that was
interrupted is taken again: that must do no harm."""


class MonqueSideVersion:
    """Implements SideVersion."""

    def __init__(self, store: Store) -> None:
        self.where = f"collection {store.address.side} of {store.where}"
        self._store = store
        self._side = store.side.with_options(read_preference=ReadPreference.PRIMARY)

    async def read(self) -> object:
        async with self._store.reaching():
            found = await self._side.find_one({"_id": VERSION_ID})
        return None if found is None else found.get("version", "")

    async def stamp(self) -> object:
        first = {"$setOnInsert": {"version": FIRST}}
        try:
            async with self._store.reaching():
                with contextlib.suppress(driver.DuplicateKeyError):  # another process wrote it at the same moment
                    await self._side.update_one({"_id": VERSION_ID}, first, upsert=True)
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, driver.NotPrimaryError):
                raise
            return FIRST  # a secondary, used for reading: a later open on the primary writes the version
        return await self.read()

    async def advance(self, version: int, step: Step) -> None:
        await step(self._store)
        async with self._store.reaching():
            await self._side.update_one({"_id": VERSION_ID, "version": version}, {"$set": {"version": version + 1}})
