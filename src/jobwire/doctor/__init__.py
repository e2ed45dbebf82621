"""Looks at a store for settings and data that lose or delay jobs.

    async with connect("bullmq+redis://host") as connection:
        for finding in (await examine(connection)).findings:
            print(finding.severity, finding.title, finding.evidence, finding.remedy)

`jobwire doctor` prints the same. Nothing is changed, not even what opening a store usually makes: a schema, indexes,
side data. Only `fix` changes something. Each check reads a bounded amount and has a time limit. One that can't be made
is a note, so `examine` raises only StoreUnavailable, if the store can't be reached.
"""

from __future__ import annotations

from jobwire.boundary import Finding, Severity, Thresholds
from jobwire.doctor.examination import Examination, examine
from jobwire.doctor.fixing import Fixed, fix

__all__ = ["Examination", "Finding", "Fixed", "Severity", "Thresholds", "examine", "fix"]
