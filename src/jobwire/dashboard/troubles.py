"""Sentences about what is wrong, each with the page on which something can be done about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobwire.counted import counted
from jobwire.dashboard.links import link
from jobwire.dashboard.series import Rates
from jobwire.dashboard.store import Store
from jobwire.figures import QueueFigures
from jobwire.look.words import spoken
from jobwire.model import State

LONG = 300.0
"""Seconds that a job may wait before that is trouble."""
UNATTENDED = 15.0
"""Seconds that a job may wait if no worker is connected."""
MANY_FAIL = 0.1
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


def of_store(store: Store) -> Iterator[Trouble]:
    """Yields what is wrong with a store and its queues."""
    look = store.look
    if look.trouble is not None:
        age = f"; its figures are {spoken(store.stale_for or 0)} old" if look.seen else ""
        yield Trouble(0, f"Store {store.name} can't be read{age}", "", "", look.trouble)
    for found in store.findings.known:
        where = f"{store.name}, queue {found.queue}" if found.queue else store.name
        href = link("queue", store=store.name, queue=found.queue) if found.queue else ""
        weight = 1 if found.severity == "critical" else 5
        yield Trouble(weight, f"{where}: {found.title}", href, "look", f"{found.evidence} {found.remedy}".strip())
    for name, figures in look.figures.items():
        yield from of_queue(store.name, figures, store.rates(name), look.workers.get(name))


def of_queue(store: str, figures: QueueFigures, rates: Rates | None, workers: int | None) -> Iterator[Trouble]:
    """Yields what is wrong with one queue. It is named in each sentence."""
    name, waiting, age = figures.name, figures.counts.get(State.WAITING, 0), figures.oldest_age or 0.0
    held = waiting + figures.counts.get(State.PAUSED, 0)
    page = link("queue", store=store, queue=name)
    wait = counted(held, "job", " waits", " wait")
    if figures.paused and held:
        yield Trouble(2, f"{name} is paused and {wait}", page, "resume it")
    elif waiting and workers == 0 and age > UNATTENDED:
        yield Trouble(
            1, f"{name}: {wait} and no worker is connected", link("workers", store=store, queue=name), "workers"
        )
    elif waiting and age > LONG:
        yield Trouble(3, f"{name}: {wait}, the oldest for {spoken(age)}", page, "look")
    share = rates.failure_share if rates is not None else None
    if rates is not None and share is not None and share >= MANY_FAIL and rates.failed * 2 >= _FEWEST:
        sentence = f"{name}: {share:.0%} of the jobs that finish fail, {rates.failed:,.0f} a minute"
        yield Trouble(2, sentence, link("failures", store=store, queue=name), "causes")
