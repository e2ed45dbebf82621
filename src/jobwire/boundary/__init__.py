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
from jobwire.boundary.features import ALL_SCHEDULES, ALL_UNIQUE, BACKOFFS, Capabilities, Feature
from jobwire.boundary.jobs import Acted, Added, PreparedJob
from jobwire.boundary.parts import (
    Bulk,
    Cancels,
    Edits,
    EventControl,
    Events,
    FlowNode,
    Flows,
    Logs,
    OnFailure,
    Pause,
    Progress,
    QueueLimits,
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
    "Acted",
    "Added",
    "Backend",
    "Bulk",
    "Cancels",
    "Capabilities",
    "Claim",
    "Completed",
    "Consumer",
    "ConsumerSettings",
    "Duty",
    "DutyReport",
    "Edits",
    "EventControl",
    "Events",
    "Failed",
    "Feature",
    "FlowNode",
    "Flows",
    "Logs",
    "OnFailure",
    "Outcome",
    "Parked",
    "Pause",
    "PreparedJob",
    "Progress",
    "QueueLimits",
    "Released",
    "Routing",
    "Schedules",
    "Settled",
    "Snoozed",
    "Strategy",
    "Throttled",
    "Transactions",
    "UniqueOwners",
    "Verdict",
    "Workers",
    "levels",
]
