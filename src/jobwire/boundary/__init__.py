"""The one boundary. Everything above is written once; everything below knows one protocol only.

A `Backend` is a store reached through one protocol: it adds, reads and administers jobs, and has a part for each
feature that not all protocols share. A `Consumer` is one worker's hold on one queue of it: it claims, settles and keeps
jobs. All operations are batch-first. Whatever a driver raises leaves a backend as StoreUnavailable (try again) or
StoreRefused (don't).
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
