"""Errors of the MongoDB driver as jobwire's: StoreUnavailable if the same call may succeed later, else StoreRefused.

StoreUnavailable: no connection, no primary, a primary that steps down or shuts down, timeouts, a write that the
majority did not confirm in time. Every other error is StoreRefused: a wrong password, a missing permission, an index
that conflicts, a document that the server does not take.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar, cast

from bson.errors import BSONError
from pymongo import errors as driver
from pymongo.topology_description import TopologyDescription

from jobwire.backoff import reconnect_delay
from jobwire.deadline import deadline
from jobwire.errors import JobwireError, StoreRefused, StoreUnavailable
from jobwire.redact import redact

Answer = TypeVar("Answer")

DUPLICATE_KEY = 11_000
_TRANSIENT_CODES = frozenset(
    {
        6,  # HostUnreachable
        7,  # HostNotFound
        24,  # LockTimeout
        50,  # MaxTimeMSExpired
        64,  # WriteConcernFailed: written here, not confirmed by the majority in time
        89,  # NetworkTimeout
        91,  # ShutdownInProgress
        112,  # WriteConflict
        134,  # ReadConcernMajorityNotAvailableYet
        189,  # PrimarySteppedDown
        202,  # NetworkInterfaceExceededTimeLimit
        262,  # ExceededTimeLimit
        9001,  # SocketException
        10_058,  # LegacyNotPrimary
        10_107,  # NotWritablePrimary
        11_600,  # InterruptedAtShutdown
        11_602,  # InterruptedDueToReplStateChange
        13_435,  # NotPrimaryNoSecondaryOk
        13_436,  # NotPrimaryOrSecondary
    }
)
# UnicodeError and OverflowError come from values that BSON can't hold.
_FAILURES = (driver.PyMongoError, BSONError, UnicodeError, OverflowError, TimeoutError)
_REFUSED_AT_LOGIN = frozenset({18, 8000})  # AuthenticationFailed, and the code of Atlas for it
_INNER_STATE = re.compile(r" \(configured timeouts: .*?\)|, Timeout: \S+, .*|, full error: .*", re.DOTALL)
_CONNECT_FAILED = re.compile(r"\[Errno (\d+)\] Connect call failed \(.*?\)")
_TRANSIENT_LABELS = ("RetryableWriteError", "TransientTransactionError", "RetryableError")


def transient(error: driver.PyMongoError) -> bool:
    """Returns True if the same call may succeed later."""
    if isinstance(error, driver.ServerSelectionTimeoutError) and _was_refused(error):
        return False
    if isinstance(error, driver.ConnectionFailure) or error.timeout:
        return True
    if any(error.has_error_label(label) for label in _TRANSIENT_LABELS):
        return True
    return bool(_codes(error)) and _codes(error) <= _TRANSIENT_CODES


def failure_of(error: Exception, where: str) -> JobwireError:
    """Returns the jobwire error for an error of the driver."""
    words = redact(_plain(str(error))) or type(error).__name__
    if isinstance(error, TimeoutError) or (isinstance(error, driver.PyMongoError) and transient(error)):
        return StoreUnavailable(f"{where} is unavailable: {words}")
    return StoreRefused(f"{where} refused: {words}")


def _plain(text: str) -> str:
    """Returns the driver's text, without the inner state of its objects.

    >>> _plain("db:27017: [Errno 111] Connect call failed ('10.0.0.7', 27017) (configured timeouts: …), Timeout: 5s, …")
    'db:27017: connection refused'
    >>> _plain("Authentication failed., full error: {'ok': 0.0, …}")
    'Authentication failed'
    """
    text = _INNER_STATE.sub("", text)
    text = _CONNECT_FAILED.sub(lambda found: os.strerror(int(found[1])).lower(), text)
    return text.removesuffix(".")


@contextmanager
def reaching(where: str) -> Generator[None]:
    """Raises errors of the driver inside the block as jobwire's own."""
    try:
        yield
    except _FAILURES as error:
        raise failure_of(error, where) from error


class Conversation:
    """Does the same as `reaching`, with a deadline. After that many seconds the call under way is cancelled, and the
    driver then closes its connection. (The driver's own timeouts do the same, but cost three times as much per write.)
    """

    __slots__ = ("_seconds", "_timeout", "_where")

    def __init__(self, where: str, seconds: float | None) -> None:
        self._where = where
        self._seconds = seconds
        self._timeout = deadline(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            raise StoreUnavailable(f"{self._where} is unavailable: no answer within {self._seconds:g} s") from error
        if isinstance(error, _FAILURES):
            raise failure_of(error, self._where) from error


async def enduring(call: Callable[[], Awaitable[Answer]], patience: float, attempt_within: float | None) -> Answer:
    """Returns the answer of a call that may safely be repeated. Repeats it while there is no primary.

    The driver repeats a write once, and waits for a primary only where it chooses the server itself, so not with
    `directConnection`. Each attempt has a deadline of its own, so that one on a broken connection leaves time for the
    next.
    """
    end = time.monotonic() + patience
    for attempt in itertools.count():
        try:
            async with deadline(attempt_within):
                return await call()
        except (driver.PyMongoError, TimeoutError) as error:
            pause = reconnect_delay(attempt)
            if (isinstance(error, driver.PyMongoError) and not transient(error)) or time.monotonic() + pause > end:
                raise
            await asyncio.sleep(pause)
    raise AssertionError("unreachable")


def _was_refused(error: driver.ServerSelectionTimeoutError) -> bool:
    """Returns True if a server refused these credentials. The driver raises that refusal once. From then on it raises
    that no server is found, with the refusal as the reason."""
    topology: Any = error.details
    servers = topology.server_descriptions().values() if isinstance(topology, TopologyDescription) else ()
    reasons = [server.error for server in servers]
    return any(isinstance(one, driver.OperationFailure) and one.code in _REFUSED_AT_LOGIN for one in reasons)


def _codes(error: driver.PyMongoError) -> frozenset[int]:
    if isinstance(error, driver.BulkWriteError):
        details: Mapping[str, Any] = error.details
        parts = cast(
            "list[Mapping[str, Any]]", [*details.get("writeErrors", ()), *details.get("writeConcernErrors", ())]
        )
        return frozenset(int(part["code"]) for part in parts if "code" in part)
    if isinstance(error, driver.OperationFailure) and error.code is not None:
        return frozenset({error.code})
    return frozenset()
