"""The flow that a job belongs to, as a picture: from the job that waits for all others down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from starlette.exceptions import HTTPException

from jobwire.boundary import Feature
from jobwire.counted import counted
from jobwire.dashboard.board import Call
from jobwire.dashboard.flow_picture import in_order, picture
from jobwire.dashboard.links import link
from jobwire.dashboard.pages.queue import figures_of, tabs
from jobwire.dashboard.render import View
from jobwire.dashboard.selection import for_a_list
from jobwire.dashboard.store import NoSuchQueue, Store
from jobwire.errors import JobNotFound
from jobwire.flow import Flow
from jobwire.model import Job, JobKey, JobTree, State

DEEPEST, WIDEST, MOST_JOBS = 8, 20, 300
_HIGHEST = 30
"""Parents that are followed up to the root."""


async def draw(call: Call) -> View:
    store, queue = await call.queue()
    await store.fresh()
    queue.capabilities.require(Feature.FLOWS)
    job = await store.ask(lambda: queue.get(call.given("id"))) if call.given("id") else None
    if job is None:
        raise HTTPException(404, f"{queue.name} has no job {call.given('id')!r}.")
    root = await store.ask(lambda: _root(store, job))
    whole = await store.ask(lambda: _tree(store, root))
    left = [MOST_JOBS]
    tree = _cut(whole, left)
    jobs = list(_jobs(tree))
    figures = figures_of(store, queue.name)

    def link_to(one: Job) -> str:
        return link("job", store=store.name, queue=one.queue, id=one.id)

    hide = call.board.redaction
    shown = _without_secrets(tree, lambda one: for_a_list(one, hide))
    return View(
        "flow.html",
        _title(tree, jobs),
        {
            "store": store,
            "queue": queue.name,
            "here": "flow",
            "figures": figures,
            "job": job,
            "picture": picture(shown, JobKey(job.queue, job.id), link_to, f"A flow of {counted(len(jobs), 'job')}"),
            "states": sorted(Counter(one.state for one in jobs).items(), key=lambda found: -found[1]),
            "cut": left[0] <= 0 or any(_full(one) for one in _trees(whole)),
            **tabs(store, figures),
        },
    )


async def _root(store: Store, job: Job) -> Job:
    """Returns the job at the top of the tree, or the highest one that is still in the store."""
    highest, seen = job, {JobKey(job.queue, job.id)}
    while highest.parent is not None and highest.parent not in seen and len(seen) <= _HIGHEST:
        seen.add(highest.parent)
        try:
            found = await (await store.queue(highest.parent.queue)).get(highest.parent.id)
        except NoSuchQueue:
            break
        if found is None:
            break
        highest = found
    return highest


async def _tree(store: Store, root: Job) -> JobTree:
    async with Flow(store.connection) as flow:
        try:
            return await flow.get(root.queue, root.id, depth=DEEPEST, width=WIDEST)
        except JobNotFound:
            return JobTree(root)


def _cut(tree: JobTree, left: list[int]) -> JobTree:
    """Returns the tree with no more jobs than are left."""
    left[0] -= 1
    children: list[JobTree] = []
    for child in in_order(tree.children):
        if left[0] <= 0:
            break
        children.append(_cut(child, left))
    return JobTree(tree.job, tuple(children))


def _without_secrets(tree: JobTree, hide: Callable[[Job], Job]) -> JobTree:
    return replace(tree, job=hide(tree.job), children=tuple(_without_secrets(one, hide) for one in tree.children))


def _trees(tree: JobTree) -> Iterator[JobTree]:
    yield tree
    for child in tree.children:
        yield from _trees(child)


def _jobs(tree: JobTree) -> Iterator[Job]:
    return (one.job for one in _trees(tree))


def _full(tree: JobTree) -> bool:
    """Returns True if the job may have more children than were read."""
    return len(tree.children) >= WIDEST


def _title(tree: JobTree, jobs: list[Job]) -> str:
    root, states = tree.job, Counter(one.state for one in jobs)
    name = f"{root.queue} {root.id}" if len(root.id) <= 12 else f"{root.queue} {root.id[:8]}…"
    failed = f", {states[State.FAILED]:,} failed" if states[State.FAILED] else ""
    if states[State.COMPLETED] == len(jobs):
        return f"Flow {name}: all {counted(len(jobs), 'job')} have completed"
    return f"Flow {name}: {states[State.COMPLETED]:,} of {counted(len(jobs), 'job')} completed{failed}"
