"""Sorts errors of the Redis driver into those worth another try and those that are final.

StoreUnavailable, for transient errors: no connection, timeouts, LOADING, a failover under way (READONLY, MASTERDOWN,
CLUSTERDOWN, TRYAGAIN, a MOVED that outlived the driver's redirections), a server that can't persist or replicate
(MISCONF, NOREPLICAS), one busy with a script (BUSY), and OOM: memory comes back when jobs finish, and a worker must go
on trying to finish them. StoreRefused, for every other error reply: wrong password, missing permission, unknown
command, a key of a wrong type.
"""

from __future__ import annotations

import ast
import asyncio
import errno
import os
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
_NOT_CONNECTED = re.compile(r"Error (-?\d+) connecting to (.+?)\. (.*?)\.?")
_NO_SENTINEL = re.compile(r"(No master found for '.*?') : .*", re.DOTALL)
_IN_A_PIPELINE = re.compile(r"Command # \d+ \((.*)\) of pipeline caused error: (.*)", re.DOTALL)
# Before Redis 7 an error inside a script is wrapped in a sentence about the script, without a code in front.
_IN_A_SCRIPT = re.compile(r"Error running script .*@user_script: ?\d+: -?")


def failure_of(error: BaseException, where: str) -> JobwireError:
    """Returns the jobwire error for one that the driver or the operating system raised."""
    while isinstance(error, driver.RedisClusterException) and error.__cause__ is not None:
        error = error.__cause__  # the reason why the driver found no node
    text = _CREDENTIALS.sub(r"\1***@", _plain(str(error))) or _WITHOUT_TEXT.get(type(error), type(error).__name__)
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


def _plain(text: str) -> str:
    """Returns the driver's text, without the inner state of its objects.

    >>> _plain("Error 111 connecting to cache:6379. Connect call failed ('10.0.0.7', 6379).")
    'Connection refused by cache:6379'
    >>> _plain("Error -2 connecting to cache:6379. Name or service not known.")
    'Name or service not known: cache:6379'
    >>> _plain("Error 1 connecting to cache:6379. [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed.")
    '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: cache:6379'
    >>> _plain("No master found for 'main' : <redis.asyncio.client.Redis(…)> - network:ConnectionError")
    "No master found for 'main': none of the sentinels can be used"
    >>> _plain("Command # 2 (LRANGE bull:mail:wait 0 -1) of pipeline caused error: ('WRONGTYPE wrong kind of value',)")
    'WRONGTYPE wrong kind of value (LRANGE bull:mail:wait)'
    >>> _plain("Command # 1 (EVALSHA 7d1 2 a b secret...) of pipeline caused error: ('MISCONF no disk',)")
    'MISCONF no disk'
    """
    if (found := _IN_A_PIPELINE.fullmatch(text)) is not None:
        command, reply = found[1].split(" "), found[2]
        if reply.startswith(("('", '("')):  # redis-py 8 writes a tuple
            reply = str(ast.literal_eval(reply)[0])
        # Arguments behind the key may be data of jobs, and a script has no key there.
        return reply if command[0].startswith("EVAL") else f"{reply.rstrip('.')} ({' '.join(command[:2])})"
    if (found := _NOT_CONNECTED.fullmatch(text)) is not None:
        number, server, reason = found.groups()
        if int(number) == errno.ECONNREFUSED:
            return f"Connection refused by {server}"
        # Of an error of the system, asyncio gives the address only. TLS has numbers of its own, with a reason.
        return f"{os.strerror(int(number)) if reason.startswith('Connect call failed') else reason}: {server}"
    if (found := _NO_SENTINEL.fullmatch(text)) is not None:
        return f"{found[1]}: none of the sentinels can be used"
    return text
