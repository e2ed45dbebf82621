"""The one boundary: code above it is written once for all protocols, code below it implements one protocol.

A `Backend` is a store that is used through one protocol: it adds, reads and administers jobs, and has a part for each
feature that not all protocols share. A `Consumer` is the backend's side of one worker: it claims jobs of one queue,
settles them and extends their leases. All operations take batches. A backend turns every error of its driver into
StoreUnavailable (trying again may help) or StoreRefused (it will not).
"""

from __future__ import annotations

from jobwire.boundary.backend import Backend
from jobwire.boundary.claims import (
    Claim,
    Completed,
    Failed,
    Outcome,
    Parked,
    Released,
    Settled,
    Snoozed,
    Throttled,
    Verdict,
)
from jobwire.boundary.consumer import Consumer, ConsumerSettings, Duty, DutyReport, Strategy
from jobwire.boundary.diagnosis import (
    DEFAULT_THRESHOLDS,
    Check,
    Diagnosis,
    Finding,
    FindingKind,
    Severity,
    Thresholds,
)
from jobwire.boundary.features import ALL_SCHEDULES, ALL_UNIQUE, BACKOFFS, Capabilities, Feature
from jobwire.boundary.figures import QueueFigures, Reading, Turnover
from jobwire.boundary.jobs import Acted, Added, PreparedJob
from jobwire.boundary.parts import (
    RESULTS_KEY,
    Bulk,
    Cancels,
    Dependencies,
    Edits,
    EventControl,
    Events,
    FlowNode,
    Flows,
    KeyLimits,
    Logs,
    OnFailure,
    Pause,
    Progress,
    QueueLimits,
    QueueList,
    Routing,
    Schedules,
    Transactions,
    UniqueOwners,
    Workers,
    levels,
)

__all__ = [
    "ALL_SCHEDULES",
    "ALL_UNIQUE",
    "BACKOFFS",
    "DEFAULT_THRESHOLDS",
    "RESULTS_KEY",
    "Acted",
    "Added",
    "Backend",
    "Bulk",
    "Cancels",
    "Capabilities",
    "Check",
    "Claim",
    "Completed",
    "Consumer",
    "ConsumerSettings",
    "Dependencies",
    "Diagnosis",
    "Duty",
    "DutyReport",
    "Edits",
    "EventControl",
    "Events",
    "Failed",
    "Feature",
    "Finding",
    "FindingKind",
    "FlowNode",
    "Flows",
    "KeyLimits",
    "Logs",
    "OnFailure",
    "Outcome",
    "Parked",
    "Pause",
    "PreparedJob",
    "Progress",
    "QueueFigures",
    "QueueLimits",
    "QueueList",
    "Reading",
    "Released",
    "Routing",
    "Schedules",
    "Settled",
    "Severity",
    "Snoozed",
    "Strategy",
    "Thresholds",
    "Throttled",
    "Transactions",
    "Turnover",
    "UniqueOwners",
    "Verdict",
    "Workers",
    "levels",
]
