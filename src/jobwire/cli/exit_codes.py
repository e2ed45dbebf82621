"""Exit codes of the command line, and the errors that only it raises."""

from __future__ import annotations

from jobwire.errors import JobNotFound, JobwireError, StoreUnavailable

DONE = 0
REFUSED = 1
"""jobwire or the store has refused: a value out of its bounds, a missing feature, a job in the wrong state."""
USAGE = 2
"""The command line, the URL of a store or the configuration can't be understood, or a confirmation is missing."""
UNREACHABLE = 3
NOTHING_FOUND = 4
"""There is no such queue, job or schedule, or no job matches."""
FAILED_CHECKS = 5
"""The work was done, and a check failed: data quality with `--fail-on quality`, or an error budget."""
INTERRUPTED = 130
READER_GONE = 141


class NothingFound(JobwireError):
    """Nothing was found."""


class WrongUsage(JobwireError):
    """The command line can't be understood."""


def code_of(error: JobwireError) -> int:
    """Returns the exit code for an error.

    >>> code_of(JobNotFound("emails", "7")), code_of(StoreUnavailable()), code_of(JobwireError())
    (4, 3, 1)
    """
    if isinstance(error, (JobNotFound, NothingFound)):
        return NOTHING_FOUND
    if isinstance(error, StoreUnavailable):
        return UNREACHABLE
    return USAGE if isinstance(error, WrongUsage) else REFUSED
