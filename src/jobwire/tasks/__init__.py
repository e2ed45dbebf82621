"""Typed tasks: functions as jobs."""

from jobwire.tasks.app import App
from jobwire.tasks.compose import Chain, Group, GroupJobs, chain, chord, group
from jobwire.tasks.current import context_of, current_job
from jobwire.tasks.depends import Depends
from jobwire.tasks.middleware import Adding, CallNext
from jobwire.tasks.parameters import InvalidArguments, previous
from jobwire.tasks.runner import InvalidResult, UnknownTask
from jobwire.tasks.task import Call, Task
from jobwire.tasks.unique import by

__all__ = [
    "Adding",
    "App",
    "Call",
    "CallNext",
    "Chain",
    "Depends",
    "Group",
    "GroupJobs",
    "InvalidArguments",
    "InvalidResult",
    "Task",
    "UnknownTask",
    "by",
    "chain",
    "chord",
    "context_of",
    "current_job",
    "group",
    "previous",
]
