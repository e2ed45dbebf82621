"""The workers of a queue, and the jobs that they run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobwire.boundary import Feature
from jobwire.counted import counted
from jobwire.dashboard.board import Call
from jobwire.dashboard.pages.queue import figures_of, tabs
from jobwire.dashboard.render import View
from jobwire.dashboard.values import Node, named, tree
from jobwire.model import Job, State, WorkerInfo

MOST = 200


@dataclass(frozen=True, slots=True)
class Shown:
    """A worker, by the store's list or by the jobs that name it."""

    name: str
    jobs: Sequence[Job]
    address: str = ""
    client: str = ""
    seen_at: datetime | None = None
    raw: Node | None = None


async def draw(call: Call) -> View:
    store, queue = await call.queue()
    await store.fresh()
    listed, running = await asyncio.gather(
        store.part(Feature.WORKERS, queue.admin.workers),
        store.ask(lambda: queue.jobs(State.ACTIVE, limit=MOST)),
    )
    by_worker: dict[str, list[Job]] = {}
    for job in running:
        by_worker.setdefault(job.worker or "", []).append(job)
    shown = [_of_list(call, one, by_worker.pop(one.name, [])) for one in (listed or ())[:MOST]]
    shown += [Shown(name, jobs) for name, jobs in by_worker.items() if name]
    figures = figures_of(store, queue.name)
    return View(
        "workers.html",
        _title(named(queue.name), shown, listed, len(running)),
        {
            "store": store,
            "queue": queue.name,
            "here": "workers",
            "figures": figures,
            "workers": shown,
            "unnamed": by_worker.get("", []),
            "listed": listed is not None,
            "seen": any(one.seen_at is not None for one in shown),
            "left_out": max(0, len(listed or ()) - MOST),
            **tabs(store, figures),
        },
    )


def _of_list(call: Call, worker: WorkerInfo, jobs: Sequence[Job]) -> Shown:
    raw = tree(dict(worker.raw), call.board.redaction) if worker.raw else None
    return Shown(worker.name, jobs, worker.address, worker.client, worker.seen_at, raw)


def _title(queue: str, shown: Sequence[Shown], listed: Sequence[WorkerInfo] | None, running: int) -> str:
    jobs = counted(running, "job", " runs", " run")
    if listed is None:
        return f"{queue}: {jobs}"
    connected = (
        counted(len(listed), "worker", " is connected", " are connected") if listed else "no worker is connected"
    )
    return f"{queue}: {connected}, {jobs}"
