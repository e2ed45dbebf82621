"""Names for a shell to complete: queues of the store, stores of the profiles. Finds nothing rather than failing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from jobwire.cli.profiles import find, located

VARIABLE = "_JOBWIRE_COMPLETE"
"""The environment variable by which the script of a shell asks for names."""
_WITHIN = 1.0
"""Seconds that a shell waits for the names."""
_PLAIN = re.compile(r"[\w.@%+=:,/{}-]+")


def queue_names(url: str | None, store: str | None) -> Sequence[str]:
    """Returns the queues of the store, or none if it does not answer soon. Never starts an embedded server.

    Names with characters that a shell would act on are left out.
    """
    try:
        found = asyncio.run(_listed(located(url, store)))
    except Exception:
        return ()
    return [name for name in found if _PLAIN.fullmatch(name)]


async def _listed(url: str | None) -> Sequence[str]:
    from jobwire.connection import connect  # noqa: PLC0415 - needs the driver of an extra

    connection = connect(url)
    if connection.address.folder is not None:
        return ()
    try:
        async with asyncio.timeout(_WITHIN):
            return await connection.queues()
    finally:
        await connection.close()


def store_names() -> Sequence[str]:
    """Returns the stores that the nearest file names."""
    try:
        profiles = find(Path.cwd())
    except Exception:
        return ()
    return sorted(profiles.stores) if profiles is not None else ()
