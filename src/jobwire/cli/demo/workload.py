"""The jobs of the demo: a small shop that sends mail and draws thumbnails.

| job | handler | what it shows |
|---|---|---|
| welcome | async | a tenth of them is delayed |
| invoice | async | progress and a log; some fail at first and are retried, a few fail for good |
| thumbnail | a plain function, so in a thread | low priority |
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from jobwire.backoff import Backoff
from jobwire.boundary import BACKOFFS, Capabilities, Feature
from jobwire.errors import Unrecoverable
from jobwire.model import Job
from jobwire.options import NewJob
from jobwire.worker import ActiveJob, BlockingJob

_BACKGROUND = 10
_SIDE = 32


@dataclass(frozen=True, slots=True)
class Workload:
    """A handler, its queue and workers, and the kinds of job in the queue with their weights."""

    queue: str
    handler: Callable[[Any], Any]
    workers: int
    concurrency: int
    kinds: dict[str, float]


async def send_mail(job: ActiveJob) -> dict[str, Any]:
    """Sends welcomes and invoices, in the worker's event loop."""
    to = job.data["to"]
    if job.name == "invoice":
        if not to:
            raise Unrecoverable("the invoice has no address, so it can't be sent")
        await job.log(f"writing invoice {job.data['number']} to {to}")
        await job.update_progress(50)
        if job.attempts_made < job.data["busy"]:
            raise ConnectionError("the mail server is busy")
    await asyncio.sleep(random.uniform(0.002, 0.02))
    return {"sent": to}


def draw_thumbnail(job: BlockingJob) -> dict[str, int]:
    """Shrinks a picture, in a thread. Each pixel of the thumbnail is the mean of a square of the picture."""
    side, scale = _SIDE, job.data["scale"]
    picture = [(x * y + job.data["number"]) % 256 for y in range(side) for x in range(side)]
    small = [
        sum(picture[(top + y) * side + left + x] for y in range(scale) for x in range(scale)) // scale**2
        for top in range(0, side, scale)
        for left in range(0, side, scale)
    ]
    time.sleep(0.005)  # the disk
    return {"pixels": len(small), "brightness": sum(small) // len(small)}


WORKLOADS = (
    Workload("mail", send_mail, workers=2, concurrency=20, kinds={"welcome": 0.6, "invoice": 0.25}),
    Workload("images", draw_thumbnail, workers=1, concurrency=8, kinds={"thumbnail": 0.15}),
)


def new_job(kind: str, number: int, rng: random.Random) -> NewJob:
    """Returns the next job of a kind. Whether it fails or is delayed is random."""
    to = f"customer-{number}@example.com"
    chance = rng.random()
    if kind == "welcome":
        delay = rng.uniform(0.3, 2.0) if chance < 0.1 else 0.0
        return NewJob({"to": to, "after": delay}, kind, delay=delay or None)
    if kind == "invoice":
        # `busy` runs fail before one succeeds; 9 is more than a job has.
        busy = 9 if chance < 0.02 else 1 if chance < 0.15 else 0
        data = {"to": "" if chance > 0.98 else to, "number": number, "busy": busy}
        return NewJob(data, kind, attempts=3, backoff=Backoff.exponential(0.2))
    return NewJob({"number": number, "scale": rng.choice((2, 4, 8))}, kind, priority=_BACKGROUND)


def due_at(job: Job) -> float | None:
    """Returns when a job became due. It is read from the job's data, because a store may drop the delay of a job that
    is due (BullMQ does)."""
    if job.created_at is None:
        return None
    return job.created_at.timestamp() + job.data.get("after", 0.0)


def fitted(job: NewJob, can: Capabilities) -> NewJob:
    """Returns the job without the options that a protocol does not have, or gives another meaning."""
    return replace(
        job,
        name=job.name if can.has(Feature.JOB_NAMES) else None,
        priority=job.priority if can.priority == "low_first" else None,
        attempts=job.attempts if can.has(Feature.ATTEMPTS) else None,
        backoff=job.backoff if job.backoff is not None and can.has(BACKOFFS[job.backoff.kind]) else None,
    )
