"""Options of jobs, schedules and workers. Each object checks its values when it is made, so bad input is refused with
its field, value and rule before anything is written."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict

from jobwire import spelling
from jobwire.backoff import Backoff
from jobwire.checks import Seconds, aware, items, mapping, seconds, text, whole, yes_or_no
from jobwire.errors import InvalidOption
from jobwire.record import record
from jobwire.spelling import refuses_typos

DEFAULT_SIZE_LIMIT = 10 * 1024 * 1024
LARGE_KEEP = 10_000


def _empty() -> dict[str, Any]:
    return {}  # several times as fast as dict[str, Any]()


@refuses_typos("a Keep")
@dataclass(frozen=True, slots=True)
class Keep:
    """The finished jobs that stay: the `count` newest, those younger than `age` seconds, or those that are both.

    Examples:
        >>> Keep(100), Keep.ALL, Keep.NONE
        (Keep(count=100, age=None), Keep(count=None, age=None), Keep(count=0, age=None))
    """

    count: int | None = None
    age: Seconds | None = None

    ALL: ClassVar[Keep]
    """Every finished job stays."""
    NONE: ClassVar[Keep]
    """A finished job is deleted at once."""

    def __post_init__(self) -> None:
        if self.count is not None:
            whole("keep.count", self.count, minimum=0)
            if self.count > LARGE_KEEP:
                warnings.warn(f"keep.count of {self.count} slows every finish down", UserWarning, stacklevel=4)
        if self.age is not None:
            seconds("keep.age", self.age)


Keep.ALL = Keep()
Keep.NONE = Keep(count=0)


@refuses_typos("a Unique")
@dataclass(frozen=True, slots=True)
class Unique:
    """Allows one job per key. Which of the options a protocol supports is in its Capabilities.

    ttl: how long the key stays taken (default: until the job has finished). extend: each refused add restarts the ttl.
    replace: a newer job replaces one that is still delayed.
    """

    key: str
    ttl: Seconds | None = None
    extend: bool = False
    replace: bool = False

    def __post_init__(self) -> None:
        text("unique.key", self.key)
        yes_or_no("unique.extend", self.extend)
        yes_or_no("unique.replace", self.replace)
        if self.ttl is not None:
            seconds("unique.ttl", self.ttl, minimum=0.001)
        if self.extend and self.ttl is None:
            raise InvalidOption("unique.extend", self.extend, "needs a ttl to extend")


@refuses_typos("a Parent")
@dataclass(frozen=True, slots=True)
class Parent:
    """The job that waits for this one. `on_failure` is what the parent does if this job fails for good."""

    id: str
    queue: str
    on_failure: Literal["wait", "fail", "continue", "ignore", "remove"] = "wait"

    def __post_init__(self) -> None:
        text("parent.id", self.id)
        text("parent.queue", self.queue)
        if self.on_failure not in ("wait", "fail", "continue", "ignore", "remove"):
            raise InvalidOption("parent.on_failure", self.on_failure, "must be wait, fail, continue, ignore or remove")


@refuses_typos("a Target")
@dataclass(frozen=True, slots=True)
class Target:
    """The workers that may run a job: one server, or all that match every given criterion (any or all of its
    values)."""

    server: str | None = None
    stack: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    mode: Literal["any", "all"] = "any"

    def __post_init__(self) -> None:
        for name in ("stack", "capabilities", "region"):
            value = getattr(self, name)
            given = items(f"target.{name}", value, "strings")
            object.__setattr__(self, name, tuple(text(f"target.{name}", item) for item in given))
        if self.server is not None:
            text("target.server", self.server)
        if self.mode not in ("any", "all"):
            raise InvalidOption("target.mode", self.mode, "must be any or all")


class Missing(Enum):
    """The default for data that was not given. A protocol may store something other than null for it."""

    DATA = "no data"

    def __repr__(self) -> str:
        return "<no data>"


NO_DATA = Missing.DATA


@record
class NewJob:
    """A job to be added. Only `data` is needed. An option of None means the protocol's default.

    `attempts` counts runs in all. `delay` and `run_at` exclude each other. `keep_completed` and `keep_failed` are the
    number of finished jobs that stay, or `Keep(count, age)`, `Keep.ALL`, `Keep.NONE`. The job is checked when it is
    made: to change it, make another one with `dataclasses.replace`.
    """

    data: Any
    name: str | None = None
    id: str | None = None
    priority: int | None = None
    delay: Seconds | None = None
    run_at: datetime | None = None
    attempts: int | None = None
    backoff: Backoff | None = None
    timeout: Seconds | None = None
    keep_completed: int | Keep | None = None
    keep_failed: int | Keep | None = None
    unique: Unique | None = None
    lifo: bool = False
    parent: Parent | None = None
    target: Target | None = None
    expires: Seconds | None = None
    extra: dict[str, Any] = field(default_factory=_empty)
    """Options of one protocol only, by their native names. That protocol checks them."""

    if not TYPE_CHECKING:  # type checkers see the fields, and refuse other names themselves

        def __init__(  # noqa: PLR0917 - one for each field
            self, data, name=None, id=None, priority=None, delay=None, run_at=None, attempts=None, backoff=None,  # noqa: A002
            timeout=None, keep_completed=None, keep_failed=None, unique=None, lifo=False, parent=None, target=None,
            expires=None, extra=None, **unknown,
        ):  # fmt: skip
            if unknown:
                check_names(unknown, (), "a job")
            self.data = data
            self.name = name
            self.id = id
            self.priority = priority
            self.delay = delay
            self.run_at = run_at
            self.attempts = attempts
            self.backoff = backoff
            self.timeout = timeout
            self.keep_completed = keep_completed
            self.keep_failed = keep_failed
            self.unique = unique
            self.lifo = lifo
            self.parent = parent
            self.target = target
            self.expires = expires
            self.extra = {} if extra is None else mapping("extra", extra)
            self.__post_init__()

    @property
    def plain(self) -> bool:
        """True if only data and name were given, as for most jobs: there is no option to check or encode."""
        return not (self.lifo or self.extra) and (
            self.id is self.priority is self.delay is self.run_at is self.attempts is self.backoff is self.timeout
            is self.keep_completed is self.keep_failed is self.unique is self.parent is self.target is self.expires
            is None
        )  # fmt: skip

    def __post_init__(self) -> None:
        if self.name is not None:
            text("name", self.name)
        if self.plain:
            return
        if self.id is not None:
            text("id", self.id)
        if self.priority is not None:
            whole("priority", self.priority, minimum=-(2**31))
        if self.delay is not None:
            seconds("delay", self.delay)
            if self.run_at is not None:
                raise InvalidOption("run_at", self.run_at, "can't be given together with delay")
        if self.run_at is not None:
            aware("run_at", self.run_at)
        if self.attempts is not None:
            whole("attempts", self.attempts, minimum=1)
        if self.backoff is not None:
            _check_kind("backoff", self.backoff, Backoff, "a Backoff, e.g. Backoff.exponential(1.0)")
        if self.timeout is not None:
            seconds("timeout", self.timeout, minimum=0.001)
        if self.keep_completed is not None:
            _check_keep("keep_completed", self.keep_completed)
        if self.keep_failed is not None:
            _check_keep("keep_failed", self.keep_failed)
        if self.unique is not None:
            _check_kind("unique", self.unique, Unique, "a Unique, e.g. Unique('order-17')")
        if self.parent is not None:
            _check_kind("parent", self.parent, Parent, "a Parent, e.g. Parent('7', 'reports')")
        if self.target is not None:
            _check_kind("target", self.target, Target, "a Target, e.g. Target(server='s1')")
        if self.lifo is not False:
            yes_or_no("lifo", self.lifo)
        if not isinstance(self.extra, dict):  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
            raise InvalidOption("extra", self.extra, "must be a dict of native options")
        if self.expires is not None:
            seconds("expires", self.expires, minimum=0.001)

    def delay_at(self, now: float) -> float:
        """Returns the seconds from now until the job may run, 0 if it may run at once."""
        if self.run_at is not None:
            return max(0.0, self.run_at.timestamp() - now)
        return seconds("delay", self.delay) if self.delay is not None else 0.0


def _check_kind(field_name: str, value: Any, kind: type[Any], words: str) -> None:
    if not isinstance(value, kind):
        raise InvalidOption(field_name, value, f"must be {words}")


def _check_keep(field_name: str, value: Any) -> None:
    if isinstance(value, Keep):
        return
    if isinstance(value, bool):
        raise InvalidOption(field_name, value, f"must be a number or a Keep; {value} means Keep.{_KEEP_NAMES[value]}")
    whole(field_name, value, minimum=0)
    if value > LARGE_KEEP:
        warnings.warn(f"{field_name} of {value} slows every finish down", UserWarning, stacklevel=5)


_KEEP_NAMES = {True: "ALL", False: "NONE"}


def keep_of(value: int | Keep, field_name: str = "keep") -> Keep:
    """Returns a keep option as a Keep, checked. A number is a count.

    >>> keep_of(100)
    Keep(count=100, age=None)
    >>> keep_of(False, "keep_failed")
    Traceback (most recent call last):
        ...
    jobwire.errors.InvalidOption: keep_failed: must be a number or a Keep; False means Keep.NONE (got False)
    """
    if isinstance(value, Keep):
        return value
    _check_keep(field_name, value)
    kept = Keep()
    object.__setattr__(kept, "count", value)  # not Keep(value): a large count was warned about, by the option's name
    return kept


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """A schedule to be stored. Takes exactly one of `every` and `cron`. `job` describes the jobs that it adds."""

    key: str
    job: NewJob
    every: Seconds | None = None
    cron: str | None = None
    tz: str | None = None
    limit: int | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    immediately: bool = False

    def __post_init__(self) -> None:
        text("key", self.key)
        if self.job.id is not None:
            raise InvalidOption("id", self.job.id, "is for a single job: a schedule adds many, each with its own id")
        if (self.every is None) == (self.cron is None):
            raise InvalidOption("every", self.every, "give exactly one of every and cron")
        if self.every is not None:
            seconds("every", self.every, minimum=0.001)
        if self.cron is not None:
            text("cron", self.cron)
        if self.tz is not None:
            text("tz", self.tz)
        if self.limit is not None:
            whole("limit", self.limit, minimum=1)
        yes_or_no("immediately", self.immediately)
        if self.start_at is not None:
            aware("start_at", self.start_at)
            if self.immediately:
                raise InvalidOption("immediately", True, "can't be given together with start_at")
        if self.end_at is not None:
            aware("end_at", self.end_at)


class JobOptions(TypedDict, total=False):
    """The options of `add` as keywords. NewJob describes each."""

    id: str | None
    priority: int | None
    delay: Seconds | None
    run_at: datetime | None
    attempts: int | None
    backoff: Backoff | None
    timeout: Seconds | None
    keep_completed: int | Keep | None
    keep_failed: int | Keep | None
    unique: Unique | None
    lifo: bool
    parent: Parent | None
    target: Target | None
    expires: Seconds | None
    extra: dict[str, Any]


JOB_OPTIONS = JobOptions.__annotations__.keys()


def check_names(given: Mapping[str, object], own: Iterable[str], what: str) -> None:
    """Refuses keywords that are neither options of a job nor in `own`, with a suggestion from both."""
    for name in given.keys() - JOB_OPTIONS:
        raise spelling.unknown(name, given[name], (*own, *JOB_OPTIONS), what)
