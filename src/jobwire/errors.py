"""The errors that jobwire raises. A class's docstring is its default message."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobwire.redact import redact

DOCS = "https://jobwire.github.io/jobwire/"
"""The address of the documentation, as pyproject.toml and mkdocs.yml have it too."""

_VALUE_LIMIT = 80
_NAME: Any = type.__dict__["__name__"]


class JobwireError(Exception):
    """Something went wrong in jobwire."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())

    @property
    def docs(self) -> str:
        """The address of the section of the documentation that explains this error: its causes and what to do.

        Examples:
            >>> StoreUnavailable().docs
            'https://jobwire.github.io/jobwire/errors/#storeunavailable'
        """
        return f"{DOCS}errors/#{next(filter(_is_explained, type(self).__mro__)).__name__.lower()}"


class InvalidOption(JobwireError, ValueError):
    """An option has a value that its rule does not allow."""

    def __init__(self, field: str, value: object, rule: str) -> None:
        super().__init__(f"{field}: {rule} (got {shown(value)})")
        self.field = field
        self.value = value
        self.rule = rule

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.field, self.value, self.rule)


class PayloadTooLarge(JobwireError, ValueError):
    """A job's data and options together are larger than the limit."""

    def __init__(self, size: int, limit: int) -> None:
        shown, most = megabytes(size), megabytes(limit)
        if shown == most:
            shown, most = f"{size:,} bytes", f"{limit:,} bytes"
        super().__init__(f"Job payload size {shown} exceeds limit of {most}")
        self.size = size
        self.limit = limit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.size, self.limit)


class MalformedPayload(JobwireError, ValueError):
    """A stored value is not JSON."""


class NotSupported(JobwireError):
    """The protocol has no such feature."""

    def __init__(self, protocol: str, feature: str, nearest: str = "") -> None:
        hint = f"; {nearest}" if nearest else ""
        super().__init__(f"{protocol} has no {feature}{hint}")
        self.protocol = protocol
        self.feature = feature
        self.nearest = nearest

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.protocol, self.feature, self.nearest)


class MissingExtra(JobwireError, ImportError):
    """A part of jobwire needs packages that are not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs more packages: pip install 'jobwire[{extra}]'")
        self.what = what
        self.extra = extra

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.extra)


class StoreUnavailable(JobwireError, ConnectionError):
    """The queue's server can't be reached."""


class Closed(JobwireError, RuntimeError):
    """This object has been closed. Open it again to use it."""


class StoreRefused(JobwireError):
    """The queue's server has refused the call. Trying again will not help."""


class NewerSideData(StoreRefused):
    """The side data in a store was written by a newer release of jobwire."""

    def __init__(self, place: str, found: int, known: int) -> None:
        super().__init__(
            f"{place} has side data of version {found}; this jobwire supports up to {known}: upgrade jobwire here"
        )
        self.place = place
        self.found = found
        self.known = known

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.place, self.found, self.known)


class JobNotFound(JobwireError, LookupError):
    """There is no job with this id."""

    def __init__(self, queue: str, job_id: str) -> None:
        super().__init__(f"queue {queue!r} has no job {job_id!r}")
        self.queue = queue
        self.job_id = job_id

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.queue, self.job_id)


class WrongState(JobwireError):
    """The job is not in a state that allows this."""


class JobFailed(JobwireError):
    """The job that was waited for has failed."""


class WaitTimeout(JobwireError, TimeoutError):
    """The job did not finish in the time given."""


class LostLock(JobwireError):
    """The claim on this job is lost: its lease has ended or was taken away, and another worker may run the job."""


class HandlerTimeout(JobwireError, TimeoutError):
    """The handler ran longer than its timeout."""


class JobCancelled(JobwireError):
    """The job was cancelled while it ran."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"cancelled: {reason}" if reason else None)
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason,)


class HandlerCrashed(JobwireError):
    """The process that ran the handler died."""


class Unrecoverable(JobwireError):
    """Raise in a handler to fail the job at once, whatever attempts are left."""


class Snooze(JobwireError):
    """Raise in a handler to put the job back for `delay` (seconds or a timedelta) without using up an attempt."""

    def __init__(self, delay: float | timedelta, message: str | None = None) -> None:
        super().__init__(message or f"snoozed for {delay} s")
        self.delay = delay

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.delay, str(self))


class RateLimited(JobwireError):
    """Raise in a handler to put the job back and stop claims for `delay` (seconds or a timedelta), without using up an
    attempt."""

    def __init__(self, delay: float | timedelta, message: str | None = None) -> None:
        super().__init__(message or f"rate limited for {delay} s")
        self.delay = delay

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.delay, str(self))


class WaitForChildren(JobwireError):
    """Raise in a handler to run the job again when its children have finished, without using up an attempt."""


def _is_explained(kind: type) -> bool:
    """Returns True for a class of the public face. Classes of users and of backends are explained by their bases."""
    return kind.__module__.startswith("jobwire.") and not kind.__module__.startswith("jobwire.backends.")


def shown(value: object) -> str:
    """Returns the value's repr in at most 80 characters and without passwords of URLs, or its type if repr() raises.

    >>> shown("x" * 1000)[-5:]
    'xxxx…'
    >>> shown("redis://:hunter2@10.0.0.7")
    "'redis://:***@10.0.0.7'"
    """
    try:
        text = str.__str__(repr(value))  # repr() may return an object of a subclass of str
    except BaseException:  # the value may be of the user's own class, and its repr() must not end a worker
        text = f"<{class_name(value)}, whose repr() raises>"
    if "://" in text:
        text = redact(text)
    return text if len(text) <= _VALUE_LIMIT else text[:_VALUE_LIMIT] + "…"


def class_name(value: object) -> str:
    """Returns the name of the value's class, also if its metaclass hides it.

    >>> class_name(5)
    'int'
    """
    return _NAME.__get__(type(value))


def megabytes(size: int) -> str:
    """Returns a size in megabytes as text.

    >>> megabytes(12_897_485)
    '12.3 MB'
    """
    return f"{size / (1024 * 1024):.1f} MB"
