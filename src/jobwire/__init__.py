"""One Python API over the job queues that companies already run."""

from jobwire._version import __version__
from jobwire.backend import Capabilities
from jobwire.backoff import Backoff
from jobwire.connection import Connection, connect
from jobwire.errors import (
    HandlerCrashed,
    HandlerTimeout,
    InvalidOption,
    JobFailed,
    JobNotFound,
    JobwireError,
    LostLock,
    MalformedPayload,
    MissingExtra,
    NotSupported,
    PayloadTooLarge,
    Snooze,
    StoreRefused,
    StoreUnavailable,
    Unrecoverable,
    WaitTimeout,
    WrongState,
)
from jobwire.model import Event, Job, Page, Schedule, State, WorkerInfo
from jobwire.options import Keep, NewJob, Parent, Target, Unique
from jobwire.queue import Queue
from jobwire.worker import ActiveJob, Worker

__all__ = [
    "ActiveJob",
    "Backoff",
    "Capabilities",
    "Connection",
    "Event",
    "HandlerCrashed",
    "HandlerTimeout",
    "InvalidOption",
    "Job",
    "JobFailed",
    "JobNotFound",
    "JobwireError",
    "Keep",
    "LostLock",
    "MalformedPayload",
    "MissingExtra",
    "NewJob",
    "NotSupported",
    "Page",
    "Parent",
    "PayloadTooLarge",
    "Queue",
    "Schedule",
    "Snooze",
    "State",
    "StoreRefused",
    "StoreUnavailable",
    "Target",
    "Unique",
    "Unrecoverable",
    "WaitTimeout",
    "Worker",
    "WorkerInfo",
    "WrongState",
    "__version__",
    "connect",
]
