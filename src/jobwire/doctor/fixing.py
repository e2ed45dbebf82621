"""Fixes those findings that can be fixed without a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobwire.boundary import Feature, Finding
from jobwire.connection import Connection
from jobwire.errors import JobwireError, StoreUnavailable


@dataclass(frozen=True, slots=True)
class Fixed:
    """The result of fixing one finding."""

    finding: Finding
    done: bool
    detail: str
    """The change that was made, or the reason why it could not be made."""


async def fix(connection: Connection, findings: Sequence[Finding]) -> Sequence[Fixed]:
    """Fixes the findings that are fixable, and leaves out the others. Each fix looks at the store again first, so it
    does no harm if another process has made it already. Raises StoreUnavailable if the store can't be reached."""
    wanted = [finding for finding in findings if finding.fixable]
    if not wanted:
        return []
    results: list[Fixed] = []
    backend = connection.backend.twin()
    try:
        await backend.open(look_only=True)
        diagnosis = backend.capabilities.part(backend.diagnosis, Feature.DIAGNOSIS)
        for finding in wanted:
            try:
                results.append(Fixed(finding, True, await diagnosis.fix(finding)))
            except StoreUnavailable:
                raise
            except JobwireError as error:
                results.append(Fixed(finding, False, str(error)))
    finally:
        await backend.close()
    return results
