"""Actions on jobs: the role that each needs, and the record of who did it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from jobwire.boundary import Acted, Feature
from jobwire.counted import counted
from jobwire.errors import JobwireError, StoreUnavailable
from jobwire.model import State
from jobwire.queue import Queue
from jobwire.redact import redact as without_passwords
from jobwire.serving.tokens import Caller, Role

audit = logging.getLogger("jobwire.dashboard.audit")

MOST_JOBS = 1000
"""Jobs of one action that is not done in the background."""
STEP = 100
STEP_WITHIN = 30.0
"""Seconds that the store has for one step."""
_MOST_NAMED, _LONGEST = 100, 200
"""Ids in one line of the audit log, and characters of each."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that can be done to jobs of some states."""

    verb: str
    past: str
    role: Role
    states: tuple[State, ...]
    run: Callable[[Queue, Sequence[str]], Awaitable[Sequence[Acted]]]
    feature: Feature | None = None
    key: str = ""
    """The key that does it."""
    needs_preview: bool = False
    """True if it can't be undone, so that it is asked about even for one job."""


ACTS = {
    act.verb: act
    for act in (
        Act(
            "retry",
            "retried",
            Role.OPERATOR,
            (State.FAILED, State.COMPLETED),
            lambda queue, ids: queue.admin.retry_many(ids),
            key="r",
        ),
        Act("promote", "promoted", Role.OPERATOR, (State.DELAYED,), lambda queue, ids: queue.admin.promote_many(ids)),
        Act(
            "cancel",
            "cancelled",
            Role.OPERATOR,
            (State.WAITING, State.DELAYED),
            lambda queue, ids: queue.admin.cancel_many(ids),
            Feature.CANCEL,
            needs_preview=True,
        ),
        Act(
            "remove",
            "removed",
            Role.ADMIN,
            tuple(state for state in State if state is not State.ACTIVE),
            lambda queue, ids: queue.admin.remove_many(ids),
            needs_preview=True,
        ),
    )
}


async def do(act: Act, queue: Queue, ids: Sequence[str], caller: Caller, store: str) -> Counter[Acted]:
    """Does it to all of the jobs, in steps. Returns the number of each answer. Writes to the audit log, also if the
    store fails on the way."""
    answers: Counter[Acted] = Counter()
    ended = "failed on the way"
    try:
        for start in range(0, len(ids), STEP):
            async with asyncio.timeout(STEP_WITHIN):
                answers.update(await act.run(queue, ids[start : start + STEP]))
        ended = "done"
    except TimeoutError:
        done = f"{answers[Acted.DONE]} of {counted(len(ids), 'job', ' is', ' are')} {act.past}"
        raise StoreUnavailable(f"no answer within {STEP_WITHIN:g} s. {done}, perhaps more: look first") from None
    finally:
        record(
            caller,
            act.verb,
            f"store {store!r}, queue {queue.name!r}, {_named(ids)}",
            f"{answers[Acted.DONE]} of {counted(len(ids), 'job')} {ended}{refusals(answers)}",
        )
    return answers


def refusals(answers: Counter[Acted]) -> str:
    """Returns how many jobs were not changed and why, for the audit log.

    >>> refusals(Counter({Acted.DONE: 3, Acted.LOCKED: 1}))
    ', not 1: running'
    """
    refused = ((answer, number) for answer, number in answers.items() if answer is not Acted.DONE and number)
    return "".join(f", not {number}: {answer.reason}" for answer, number in refused)


def _named(ids: Sequence[str]) -> str:
    """Returns the first ids for the audit log, each cut."""
    first = ", ".join(repr(job_id[:_LONGEST]) for job_id in ids[:_MOST_NAMED])
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return f"{'job' if len(ids) == 1 else 'jobs'} {first}{more}"


def described(values: Mapping[str, object]) -> str:
    """Returns values for the audit log, each cut.

    >>> described({"state": "failed", "class": "LookupError"})
    "state='failed', class='LookupError'"
    """
    return ", ".join(f"{name}={repr(value)[:_LONGEST]}" for name, value in values.items()) or "none"


@contextmanager
def recorded(caller: Caller, what: str, where: str) -> Generator[None]:
    """Writes to the audit log how the block ended: done, or the reason why not."""
    ended = "stopped on the way"
    try:
        yield
        ended = "done"
    except JobwireError as error:
        ended = f"failed: {without_passwords(str(error))}"
        raise
    finally:
        record(caller, what, where, ended)


def record(caller: Caller, what: str, where: str, ended: str) -> None:
    """Writes one line to the audit log: who did what, where, and how it ended."""
    audit.info("%r (%s): %s, %s: %s", caller.name or "anyone", caller.role, what, where, " ".join(ended.split()))
