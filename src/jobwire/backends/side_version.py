"""Checks the version of side data when a store is opened, and brings older side data up to date.

Side data is what jobwire stores beside a peer's own data. Each schema, namespace or collection that holds side data has
one version number, so that two releases of jobwire on one store do not misread each other's data:

* Side data without a number gets version 1. It is new, or was made before there were numbers.
* Side data of an older version is brought up to date, one step after the other.
* Side data of a newer version is refused before anything is written to it.

A backend has a table `STEPS`: its first entry leads from version 1 to version 2, and so on. The version of this release
is therefore one more than the number of steps. To change side data, append a step and never edit an old one. Two
processes may take the same step at once, so a step must do no harm when it runs twice, or be run in one transaction
with the change of the number.

A process reads the number once, when it opens the store or first uses its side data. Processes of an older release that
run while a newer one brings side data up to date are not stopped: stop them first.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol, TypeVar

from jobwire.boundary import Finding
from jobwire.boundary.finding_kinds import SIDE_NEWER, SIDE_OLDER, SIDE_UNREADABLE
from jobwire.errors import NewerSideData, StoreRefused, StoreUnavailable, shown

_log = logging.getLogger("jobwire.side_data")

FIRST = 1
Step_contra = TypeVar("Step_contra", contravariant=True)


class SideVersion(Protocol[Step_contra]):
    """The version of the side data in one schema, namespace or collection."""

    @property
    def where(self) -> str:
        """The name of the schema, namespace or collection, for messages."""
        ...

    async def read(self) -> object:
        """Returns the number as it is stored, None if there is none."""
        ...

    async def stamp(self) -> object:
        """Writes FIRST unless there is a number. Returns the number that is there now."""
        ...

    async def advance(self, version: int, step: Step_contra) -> None:
        """Takes the step from `version` to the next and then raises the number. Leaves the number as it is if another
        process has raised it already."""
        ...


async def bring_up_to_date(side: SideVersion[Step_contra], steps: Sequence[Step_contra]) -> None:
    """Brings the side data to this release's version. Raises NewerSideData if a newer release made it.

    If the account may not read or write side data, its version is taken to be 1.
    """
    newest = FIRST + len(steps)
    try:
        found = await side.read()
        if found is None:
            found = await side.stamp()
    except StoreRefused as refused:
        _log.info(
            "%s: the version of side data can't be read or stored, so it is taken to be %d: %s",
            side.where,
            FIRST,
            refused,
        )
        found = FIRST
    for _ in steps:
        version = checked(side.where, found, newest)
        if version == newest:
            return
        await side.advance(version, steps[version - FIRST])
        _log.info("%s: brought side data from version %d to %d", side.where, version, version + 1)
        found = await side.read()
    version = checked(side.where, found, newest)
    if version < newest:
        raise StoreUnavailable(
            f"{side.where} has side data of version {version}, which could not be brought to version {newest}: "
            f"another process wrote the version at the same time"
        )


async def findings(side: SideVersion[Step_contra], steps: Sequence[Step_contra]) -> list[Finding]:
    """Returns a finding if the side data has another version than this release. Changes nothing."""
    newest, found = FIRST + len(steps), await side.read()
    if found is None:
        return []
    try:
        version = checked(side.where, found, newest)
    except NewerSideData as newer:
        return [SIDE_NEWER.found(str(newer))]
    except StoreRefused as refused:
        return [SIDE_UNREADABLE.found(str(refused))]
    if version == newest:
        return []
    evidence = f"{side.where} has side data of version {version}; this jobwire makes version {newest}"
    return [SIDE_OLDER.found(evidence, fix=f"bring side data from version {version} to {newest}")]


def checked(where: str, found: object, newest: int) -> int:
    """Returns the number that was found. Raises NewerSideData above `newest`, StoreRefused if it is not a version.

    >>> checked("key a", b"1", newest=2)
    1
    >>> checked("key a", 3, newest=2)
    Traceback (most recent call last):
    jobwire.errors.NewerSideData: key a has side data of version 3; this jobwire supports up to 2: upgrade jobwire here
    """
    version = _whole(found)
    if version is None or version < FIRST:
        raise StoreRefused(
            f"{where} has side data of version {shown(found)}, which is not a version: this jobwire knows {FIRST} to "
            f"{newest}; restore the number"
        )
    if version > newest:
        raise NewerSideData(where, version, newest)
    return version


def _whole(found: object) -> int | None:
    """Returns a stored number as an int, None if it is not a whole one. MongoDB's shell writes whole numbers as floats,
    and Redis stores them as text."""
    if isinstance(found, bool) or not isinstance(found, (int, float, bytes)):
        return None
    try:
        whole = int(found)
    except (ValueError, OverflowError):
        return None
    return whole if isinstance(found, bytes) or whole == found else None
