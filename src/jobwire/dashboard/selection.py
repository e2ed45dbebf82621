"""Chooses jobs of a queue by state and filters, and reads no more of the queue than a bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jobwire.dashboard.redaction import Redaction
from jobwire.durations import RULE, seconds_in
from jobwire.error_class import error_class, exception_line
from jobwire.errors import InvalidOption
from jobwire.job_filters import Filters
from jobwire.model import Job, State, state_of
from jobwire.queue import Queue

PAGE = 50
_STEP = 250
_LONGEST_ERROR = 2000
"""Characters of an error that filters read."""
_LONGEST_END = 10_000
"""Characters of the beginning and of the end of a stack that are searched for the exception."""
MOST_LOOKED_AT = 2000
"""Jobs that are compared with filters for one page."""
PARAMETERS = ("state", "name", "error", "class", "older", "younger")


@dataclass(frozen=True, slots=True)
class Selection:
    """A state and conditions. `kind` is a class of errors, as the page of failures has it. `name` is a part of the
    job's name: people search by what they remember."""

    state: State
    filters: Filters
    kind: str
    name: str
    given: Mapping[str, str]
    """The parameters as they were written, for links."""

    def __bool__(self) -> bool:
        return bool(self.filters or self.kind or self.name)

    def match(self, job: Job) -> bool:
        if self.name.casefold() not in job.name.casefold() or not self.filters.match(job):
            return False
        return not self.kind or class_of(job) == self.kind


@dataclass(slots=True)
class Found:
    """Jobs that match, the number of those looked at, and the cursor to go on with."""

    jobs: list[Job] = field(default_factory=list[Job])
    looked_at: int = 0
    cursor: str | None = None


def selection_of(given: Mapping[str, str]) -> Selection:
    """Returns the selection that parameters describe. Raises InvalidOption."""
    written = {name: given.get(name, "").strip() for name in PARAMETERS}
    written["state"] = written["state"] or State.WAITING.value
    filters = Filters(
        None,
        written["error"] or None,
        _duration("older", written["older"]),
        _duration("younger", written["younger"]),
    )
    return Selection(state_of(written["state"]), filters, written["class"], written["name"], written)


def _duration(name: str, text: str) -> float | None:
    if not text:
        return None
    found = seconds_in(text)
    if found is None or not math.isfinite(found):
        raise InvalidOption(name, text, RULE)
    return found


async def read(
    queue: Queue,
    chosen: Selection,
    redaction: Redaction,
    cursor: str | None = None,
    *,
    enough: int = PAGE,
    most: int = MOST_LOOKED_AT,
) -> Found:
    """Reads jobs from the cursor on until `enough` match, `most` have been looked at, or there are no more."""
    found = Found(cursor=cursor)
    step = _STEP if chosen else min(enough, _STEP)
    while True:
        page = await queue.jobs(chosen.state, limit=step, cursor=found.cursor)
        found.cursor = page.cursor
        found.looked_at += len(page)
        found.jobs += [job for job in (for_a_list(one, redaction) for one in page) if chosen.match(job)]
        if found.cursor is None or len(found.jobs) >= enough or found.looked_at >= most:
            return found


def for_a_list(job: Job, redaction: Redaction) -> Job:
    """Returns the job with the part of its errors that lists show and filters read, redacted: of the last stack its
    first line and the one with the exception. To redact whole stacks of a thousand jobs would take seconds. Data and
    result are redacted when they are shown."""
    if job.error is None and not job.stacktrace:
        return job
    stack = _ends(job.stacktrace[-1]).strip() if job.stacktrace else ""
    lines = {stack.partition("\n")[0][:_LONGEST_ERROR]: None, exception_line(stack)[:_LONGEST_ERROR]: None}
    error = None if job.error is None else redaction.text(job.error, _LONGEST_ERROR)
    return replace(job, error=error, stacktrace=(redaction.text("\n".join(lines), 2 * _LONGEST_ERROR + 1),))


def _ends(stack: str) -> str:
    """Returns the beginning and the end of a stack, one of which names the exception."""
    if len(stack) <= 2 * _LONGEST_END:
        return stack
    return f"{stack[:_LONGEST_END]}\n{stack[-_LONGEST_END:]}"


def class_of(job: Job) -> str:
    """Returns the class of a job's error."""
    stack = job.stacktrace[-1].strip() if job.stacktrace else ""
    return error_class(job.error or "", stack) or "no error text"
