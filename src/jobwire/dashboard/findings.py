"""The findings of `jobwire doctor` about a store, looked for now and then in the background."""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobwire.connection import Connection
from jobwire.errors import JobwireError
from jobwire.redact import redact

_log = logging.getLogger("jobwire.dashboard")
_EVERY = 300.0
_SHARE = 100
"""After an examination that took a second, the next one begins so many seconds later at the earliest."""
_WITHIN = 120.0


@dataclass(frozen=True, slots=True)
class FoundByDoctor:
    """One finding, as text."""

    code: str
    severity: str
    title: str
    evidence: str
    remedy: str
    queue: str | None


async def examined(connection: Connection) -> Sequence[FoundByDoctor]:
    """Returns what the doctor finds beyond notes. Returns nothing if this jobwire has no doctor."""
    try:
        doctor: Any = importlib.import_module("jobwire.doctor")
    except ImportError:
        return []
    examination = await doctor.examine(connection)
    return [
        FoundByDoctor(
            finding.code,
            str(finding.severity),
            finding.title,
            redact(finding.evidence),
            redact(finding.remedy),
            finding.queue,
        )
        for finding in examination.findings
        if finding.troubling
    ]


class Findings:
    """The last findings about one store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._next = float("-inf")
        self._task: asyncio.Task[None] | None = None
        self.known: Sequence[FoundByDoctor] = ()

    def refresh(self) -> None:
        """Begins an examination in the background if the last one is some minutes old."""
        if time.monotonic() >= self._next and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._examine())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _examine(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(_WITHIN):
                self.known = await examined(self._connection)
        except (JobwireError, TimeoutError) as error:
            _log.info("the examination of %s failed: %s; it is repeated later", self._connection, error)
        finally:
            took = time.monotonic() - began
            self._next = began + max(_EVERY, _SHARE * took)
