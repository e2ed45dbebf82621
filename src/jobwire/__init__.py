"""One Python API over the job queues that companies already run."""

from jobwire._version import __version__
from jobwire.backoff import Backoff
from jobwire.boundary import Capabilities, Feature
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
from jobwire.model import Children, Event, EventKind, Job, JobKey, JobTree, Limits, Page, Schedule, State, WorkerInfo
from jobwire.options import Keep, NewJob, Parent, Target, Unique
from jobwire.queue import Queue
from jobwire.rate import Rate
from jobwire.worker import ActiveJob, Worker

__all__ = [
    "ActiveJob",
    "Backoff",
    "Capabilities",
    "Children",
    "ClaimedJob",
    "Closed",
    "Connection",
    "Event",
    "EventKind",
    "Feature",
    "Flow",
    "FlowJob",
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
    "Rate",
    "RateLimited",
    "Schedule",
    "Snooze",
    "State",
    "StoreRefused",
    "StoreUnavailable",
    "Target",
    "Unique",
    "Unrecoverable",
    "WaitForChildren",
    "WaitTimeout",
    "Worker",
    "WorkerInfo",
    "WrongState",
    "__version__",
    "connect",
]
