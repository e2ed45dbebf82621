"""One Python API over the job queues that companies already run.

The names of typed tasks (`App`, `Depends`, …) are imported from `jobwire.tasks` when they are first used.
"""

from typing import TYPE_CHECKING, Any

from jobwire._version import __version__
from jobwire.backoff import Backoff
from jobwire.boundary import Acted, Capabilities, Feature
from jobwire.claimed import ClaimedJob
from jobwire.connection import Connection, connect
from jobwire.errors import (
    Closed,
    HandlerCrashed,
    HandlerTimeout,
    InvalidOption,
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobwireError,
    LostLock,
    MalformedPayload,
    MissingExtra,
    NewerSideData,
    NotSupported,
    PayloadTooLarge,
    RateLimited,
    Snooze,
    StoreRefused,
    StoreUnavailable,
    Unrecoverable,
    WaitForChildren,
    WaitTimeout,
    WrongState,
)
from jobwire.flow import Flow, FlowJob
from jobwire.model import (
    AddStatus,
    Children,
    Event,
    EventKind,
    Job,
    JobKey,
    JobTree,
    Limits,
    Page,
    Schedule,
    State,
    WorkerInfo,
)
from jobwire.options import Keep, NewJob, Parent, Target, Unique
from jobwire.queue import Queue
from jobwire.queue_admin import QueueAdmin
from jobwire.rate import Rate
from jobwire.worker import ActiveJob, BlockingJob, QueueHandler, Worker

if TYPE_CHECKING:
    from jobwire.tasks import (
        App,
        Chain,
        Depends,
        Group,
        GroupJobs,
        Task,
        by,
        chain,
        chord,
        context_of,
        current_job,
        group,
        previous,
    )

__all__ = [
    "Acted",
    "ActiveJob",
    "AddStatus",
    "App",
    "Backoff",
    "BlockingJob",
    "Capabilities",
    "Chain",
    "Children",
    "ClaimedJob",
    "Closed",
    "Connection",
    "Depends",
    "Event",
    "EventKind",
    "Feature",
    "Flow",
    "FlowJob",
    "Group",
    "GroupJobs",
    "HandlerCrashed",
    "HandlerTimeout",
    "InvalidOption",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobKey",
    "JobNotFound",
    "JobTree",
    "JobwireError",
    "Keep",
    "Limits",
    "LostLock",
    "MalformedPayload",
    "MissingExtra",
    "NewJob",
    "NewerSideData",
    "NotSupported",
    "Page",
    "Parent",
    "PayloadTooLarge",
    "Queue",
    "QueueAdmin",
    "QueueHandler",
    "Rate",
    "RateLimited",
    "Schedule",
    "Snooze",
    "State",
    "StoreRefused",
    "StoreUnavailable",
    "Target",
    "Task",
    "Unique",
    "Unrecoverable",
    "WaitForChildren",
    "WaitTimeout",
    "Worker",
    "WorkerInfo",
    "WrongState",
    "__version__",
    "by",
    "chain",
    "chord",
    "connect",
    "context_of",
    "current_job",
    "group",
    "previous",
]

_TASKS = frozenset(
    {
        *("App", "Chain", "Depends", "Group", "GroupJobs", "Task"),
        *("by", "chain", "chord", "context_of", "current_job", "group", "previous"),
    }
)


def __getattr__(name: str) -> Any:
    if name in _TASKS:
        from jobwire import tasks  # noqa: PLC0415 - only programs with tasks need it

        return getattr(tasks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
