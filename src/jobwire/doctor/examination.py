"""Runs all checks of a store: those of its backend, and those that are the same for every protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from jobwire import embedded
from jobwire.boundary import (
    DEFAULT_THRESHOLDS,
    Backend,
    Check,
    Diagnosis,
    Feature,
    Finding,
    Severity,
    Thresholds,
)
from jobwire.boundary.finding_kinds import MANY_QUEUES, NOT_EXAMINED, STORE_EMPTY, STORE_REFUSED
from jobwire.connection import Connection
from jobwire.doctor.check_clock import clock_check
from jobwire.doctor.check_queue import QueueCheck
from jobwire.errors import JobwireError, StoreRefused, StoreUnavailable
from jobwire.protocols import PROTOCOLS
from jobwire.urls import Address

CHECK_WITHIN = 10.0
"""Seconds that one check may take."""
LIST_WITHIN = 60.0
"""Seconds in which the queues must be listed."""
MOST_QUEUES = 200
_AT_ONCE = 4
# The last three come from replies without a field that other servers of the kind have.
_UNSEEN = (JobwireError, TimeoutError, LookupError, ValueError, TypeError)
_ORDER = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.NOTE: 2}


@dataclass(frozen=True, slots=True)
class Examination:
    """The findings about a store, trouble first, and what was looked at."""

    where: str
    """The store's URL, without a password."""
    findings: Sequence[Finding]
    server: str = ""
    """The server's name and version, if it could be asked."""
    queues: Sequence[str] = ()
    """The queues that were looked at."""
    checks: Sequence[str] = ()
    """Names of the checks that were made beside those of queues."""

    @property
    def healthy(self) -> bool:
        """True if there is nothing worse than notes."""
        return not any(finding.troubling for finding in self.findings)


async def examine(connection: Connection, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Examination:
    """Looks at a store through connections of its own. The connection that is given need not be open, and stays as it
    is. Raises StoreUnavailable if the store can't be reached, or is an embedded one that has not been made."""
    where = connection.address.redacted
    _require_folder(connection.address)
    try:
        async with _opened(connection) as backend:
            return await _examined(where, backend, thresholds)
    except StoreRefused as refused:
        return Examination(where, [STORE_REFUSED.found(str(refused))])


def _require_folder(address: Address) -> None:
    """Raises StoreUnavailable if the folder of an embedded server has none: opening would make a server there."""
    store = PROTOCOLS[address.protocol]
    if address.transport == "embedded" and not embedded.exists(store.store, address.folder or embedded.FOLDER):
        folder = (address.folder or Path(embedded.FOLDER)).absolute()
        raise StoreUnavailable(
            f"{address.redacted} is unavailable: {folder} has no data of an embedded {store.embedded_server}"
        )


@asynccontextmanager
async def _opened(connection: Connection) -> AsyncGenerator[Backend]:
    """Yields another backend of the same store, opened without changing anything there."""
    backend = connection.backend.twin()
    try:
        await backend.open(look_only=True)
        yield backend
    finally:
        await backend.close()


async def _examined(where: str, backend: Backend, thresholds: Thresholds) -> Examination:
    findings: list[Finding] = []
    results: list[_Result] = []
    server, names, listed = "", await _queues(backend, findings), []
    queues = names[:MOST_QUEUES]
    if len(names) > len(queues):
        findings.append(MANY_QUEUES.found(f"{len(queues)} of {len(names):,} queues were looked at"))
    diagnosis = backend.diagnosis
    if diagnosis is not None:
        try:
            async with asyncio.timeout(CHECK_WITHIN):
                server = await diagnosis.server()
        except _UNSEEN as error:
            findings.append(_unseen("the server's version", error))
        checks = [clock_check(diagnosis, thresholds.clock), *diagnosis.checks(queues, thresholds)]
        listed = [check.name for check in checks]
        results += [await _run(check) for check in checks]  # one after the other, to be a small load
    slots = asyncio.Semaphore(_AT_ONCE)

    async def look_at(name: str) -> _Result:
        async with slots:
            return await _run(Check(f"queue {name}", QueueCheck(backend, name, thresholds).run), queue=name)

    results += await asyncio.gather(*map(look_at, queues))
    if diagnosis is not None and any(isinstance(one.error, (StoreUnavailable, TimeoutError)) for one in results):
        await _require_answer(diagnosis, where)
    empty = not names and not findings and backend.queue_list is not None
    findings += [finding for result in results for finding in result.findings]
    if empty and STORE_EMPTY.code not in (finding.code for finding in findings):
        findings.append(STORE_EMPTY.found(f"{where} has no queues"))
    findings.sort(key=lambda finding: (_ORDER[finding.severity], finding.queue or "", finding.code))
    return Examination(where, findings, server, queues, listed)


async def _queues(backend: Backend, findings: list[Finding]) -> Sequence[str]:
    if backend.queue_list is None or not backend.capabilities.has(Feature.QUEUES):
        return []
    try:
        async with asyncio.timeout(LIST_WITHIN):
            return await backend.queue_list.names()
    except _UNSEEN as error:
        findings.append(_unseen("the queues", error, within=LIST_WITHIN))
        return []


@dataclass(frozen=True, slots=True)
class _Result:
    """The findings of one check, or a note and the error that kept it from being made."""

    findings: Sequence[Finding]
    error: Exception | None = None


async def _run(check: Check, queue: str | None = None) -> _Result:
    try:
        async with asyncio.timeout(CHECK_WITHIN):
            return _Result(await check.run())
    except _UNSEEN as error:
        return _Result([_unseen(check.name, error, queue)], error)


async def _require_answer(diagnosis: Diagnosis, where: str) -> None:
    """Raises StoreUnavailable if the store has gone since it was opened. Notes on every check would look healthy."""
    try:
        async with asyncio.timeout(CHECK_WITHIN):
            await diagnosis.now()
    except StoreRefused:
        pass  # it answers
    except TimeoutError:
        raise StoreUnavailable(f"{where} is unavailable: no answer within {CHECK_WITHIN:g} s") from None


def _unseen(what: str, error: Exception, queue: str | None = None, within: float | None = None) -> Finding:
    """Returns the note that something could not be looked at, with the reason."""
    if isinstance(error, JobwireError):
        reason = str(error)
    elif isinstance(error, TimeoutError):
        reason = f"no answer within {within or CHECK_WITHIN:g} s"
    else:
        reason = f"the server's answer can't be read ({type(error).__name__}: {error})"
    return NOT_EXAMINED.found(f"{what}: {reason}", queue=queue)
