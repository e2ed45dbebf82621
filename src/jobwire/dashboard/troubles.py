"""Sentences about what is wrong, each with the page on which something can be done about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobwire.boundary.finding_kinds import NO_WORKER, PAUSED, WAITING
from jobwire.counted import counted
from jobwire.dashboard.blocked import Blocked
from jobwire.dashboard.links import link
from jobwire.dashboard.series import Bin, Rates
from jobwire.dashboard.store import Store
from jobwire.dashboard.values import named
from jobwire.figures import QueueFigures
from jobwire.look.words import spoken
from jobwire.model import State

LONG = 300.0
"""Seconds that a job may wait before that is trouble."""
UNATTENDED = 15.0
"""Seconds that a job may wait if no worker is connected."""
UNTAKEN = 90.0
"""Seconds that a job may wait if none is taken, where the protocol does not list workers."""
_SEEN = 4
"""Half minutes that must have passed without a job taken, or fewer if the dashboard has not looked for longer."""
MANY_FAIL = 0.1
_SEEN_BY_LOOKS = (NO_WORKER.code, WAITING.code, PAUSED.code)
"""Findings of the doctor that repeat a sentence about the figures of a look."""
_FEWEST = 5


@dataclass(frozen=True, slots=True)
class Trouble:
    """One sentence, with a page to act on if there is one. Smaller weights come first."""

    weight: int
    sentence: str
    href: str
    act: str
    """The words of the link."""
    detail: str = ""
    command: str = ""
    """A remedy to copy."""
    store: str = ""
    """The store, if the sentence does not name it."""


def of_store(store: Store) -> Iterator[Trouble]:
    """Yields what is wrong with a store and its queues."""
    look = store.look
    if look.trouble is not None:
        age = f"; its figures are {spoken(store.stale_for or 0)} old" if look.seen else ""
        yield Trouble(0, f"Store {store.name} can't be read{age}", "", "", look.trouble)
    of_queues = {name: list(of_known_queue(store, figures)) for name, figures in look.figures.items()}
    for found in store.findings.known:
        if found.code in _SEEN_BY_LOOKS and of_queues.get(found.queue or ""):
            continue
        where = f"{store.name}, queue {named(found.queue)}" if found.queue else store.name
        href = link("queue", store=store.name, queue=found.queue) if found.queue else ""
        weight = 1 if found.severity == "critical" else 5
        yield Trouble(weight, f"{where}: {found.title}", href, "look", found.evidence, found.remedy)
    for sentences in of_queues.values():
        yield from sentences


def of_known_queue(store: Store, figures: QueueFigures) -> Iterator[Trouble]:
    """Yields what is wrong with one queue, by all that the last looks found in it."""
    name = figures.name
    known = store.rates(name), store.look.workers.get(name), bins_of(store, name)
    yield from of_queue(store.name, figures, *known, blocked=store.closer.blocked.get(name))


def bins_of(store: Store, queue: str) -> Sequence[Bin]:
    """Returns the last hour of a queue."""
    series = store.series.get(queue)
    return series.last_hour(store.look.at) if series is not None else ()


def of_queue(
    store: str,
    figures: QueueFigures,
    rates: Rates | None,
    workers: int | None,
    bins: Sequence[Bin] = (),
    *,
    blocked: Blocked | None = None,
) -> Iterator[Trouble]:
    """Yields what is wrong with one queue. It is named in each sentence."""
    queue, name, waiting, age = (
        figures.name,
        named(figures.name),
        figures.counts.get(State.WAITING, 0),
        figures.oldest_age or 0.0,
    )
    held = waiting + figures.counts.get(State.PAUSED, 0)
    page = link("queue", store=store, queue=queue)
    wait = counted(held, "job", " waits", " wait")
    if figures.paused and held:
        yield Trouble(2, f"{name} is paused and {wait}", page, "resume it", store=store)
    elif waiting and workers == 0 and age > UNATTENDED and not _just_came(bins):
        sentence = f"{name}: {wait} and no worker is connected"
        yield Trouble(1, sentence, link("workers", store=store, queue=queue), "workers", store=store)
    elif waiting and workers is None and age > UNTAKEN and not figures.counts.get(State.ACTIVE) and _untaken(bins):
        sentence = f"{name}: {waiting_for(held, age)}, and no worker takes {'it' if held == 1 else 'them'}"
        yield Trouble(1, sentence, link("workers", store=store, queue=queue), "workers", store=store)
    elif waiting and age > LONG:
        yield Trouble(3, f"{name}: {waiting_for(held, age)}", page, "look", store=store)
    if blocked is not None:
        sentence = f"{name}: a job waits for a job of {named(blocked.child.queue)} that has failed"
        yield Trouble(2, sentence, link("flow", store=store, queue=queue, id=blocked.parent), "flow", store=store)
    share = rates.failure_share if rates is not None else None
    if rates is not None and share is not None and share >= MANY_FAIL and rates.failed * 2 >= _FEWEST:
        sentence = f"{name}: {share:.0%} of the jobs that finish fail, {rates.failed:,.0f} a minute"
        yield Trouble(2, sentence, link("failures", store=store, queue=queue), "causes", store=store)


def waiting_for(jobs: int, age: float) -> str:
    """Returns how many jobs wait, and for how long.

    >>> waiting_for(1, 240), waiting_for(312, 240)
    ('1 job waits, for 4 min', '312 jobs wait, the oldest for 4 min')
    """
    return f"{counted(jobs, 'job', ' waits', ' wait')}, {'' if jobs == 1 else 'the oldest '}for {spoken(age)}"


def _just_came(bins: Sequence[Bin]) -> bool:
    """Returns True if no job waited half a minute ago: one that has just become due is old and has not waited."""
    return len(bins) > 1 and bins[-2].waiting == 0


def _untaken(bins: Sequence[Bin]) -> bool:
    """Returns True if for some half minutes jobs have waited, none has finished, and they have not become fewer."""
    last = bins[-_SEEN:]
    waiting = [one.waiting for one in last]
    return (
        len(last) > 1
        and min(waiting) > 0
        and waiting == sorted(waiting)
        and not any(one.completed or one.failed for one in last[1:])
    )
