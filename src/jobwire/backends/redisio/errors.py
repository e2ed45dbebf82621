"""Sorts errors of the Redis driver into those worth another try and those that are final.

StoreUnavailable, for transient errors: no connection, timeouts, LOADING, a failover under way (READONLY, MASTERDOWN,
CLUSTERDOWN, TRYAGAIN, a MOVED that outlived the driver's redirections), a server that can't persist or replicate
(MISCONF, NOREPLICAS), one busy with a script (BUSY), and OOM: memory comes back when jobs finish, and a worker must go
on trying to finish them. StoreRefused, for every other error reply: wrong password, missing permission, unknown
command, a key of a wrong type.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Generator
from contextlib import contextmanager

from redis import exceptions as driver

from jobwire.errors import JobwireError, StoreRefused, StoreUnavailable

_TRANSIENT_CODES = (
    "BUSY ",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "NOREPLICAS",
    "OOM ",
    "READONLY",
    "TRYAGAIN",
    "UNBLOCKED",
)
_TRANSIENT = (
    driver.ConnectionError,
    driver.TimeoutError,
    driver.ReadOnlyError,
    driver.OutOfMemoryError,
    driver.ClusterError,
    driver.RedisClusterException,
    driver.ClusterDownError,
    driver.SlotNotCoveredError,
    driver.TryAgainError,
    driver.AskError,
    driver.MovedError,
    driver.MasterDownError,
    OSError,
    TimeoutError,
    asyncio.IncompleteReadError,
)
_DRIVER = (driver.RedisError, driver.RedisClusterException)  # the second class does not derive from the first
_REFUSED = (driver.AuthenticationError, driver.AuthorizationError, driver.NoPermissionError)
_NO_CLUSTER = "Cluster mode is not enabled on this node"
_WITHOUT_TEXT: dict[type[BaseException], str] = {TimeoutError: "no answer in time"}
_CREDENTIALS = re.compile(r"(\w+://)[^/@\s]*@")
# Before Redis 7 an error inside a script is wrapped in a sentence about the script, without a code in front.
_IN_A_SCRIPT = re.compile(r"Error running script .*@user_script: ?\d+: -?")


def failure_of(error: BaseException, where: str) -> JobwireError:
    """Returns the jobwire error for one that the driver or the operating system raised."""
    while isinstance(error, driver.RedisClusterException) and error.__cause__ is not None:
        error = error.__cause__  # the reason why the driver found no node
    text = _CREDENTIALS.sub(r"\1***@", str(error)) or _WITHOUT_TEXT.get(type(error), type(error).__name__)
    if isinstance(error, _REFUSED) or text == _NO_CLUSTER:
        return StoreRefused(f"{where} refused: {text}")
    if isinstance(error, _TRANSIENT) or _IN_A_SCRIPT.sub("", text).startswith(_TRANSIENT_CODES):
        return StoreUnavailable(f"{where} is unavailable: {text}")
    return StoreRefused(f"{where} refused: {text}")


@contextmanager
def translated_errors(where: str) -> Generator[None]:
    """Turns errors of the driver and of the operating system inside the block into jobwire's own."""
    try:
        yield
    except (*_DRIVER, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        if isinstance(error, JobwireError):
            raise
        raise failure_of(error, where) from error
