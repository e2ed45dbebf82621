"""One job: its life, its data, what went wrong, and what can be done about it."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence

from starlette.exceptions import HTTPException

from jobwire.boundary import Feature
from jobwire.counted import counted
from jobwire.dashboard.board import Call
from jobwire.dashboard.flow_picture import in_order
from jobwire.dashboard.lifetime import spans_of
from jobwire.dashboard.pages.outcome import said
from jobwire.dashboard.pages.queue import figures_of, tabs
from jobwire.dashboard.pictures import timeline
from jobwire.dashboard.render import View
from jobwire.dashboard.selection import class_of, for_a_list
from jobwire.dashboard.store import Store
from jobwire.dashboard.values import capped, named, shown_text, tree
from jobwire.error_class import specific_class
from jobwire.errors import JobNotFound
from jobwire.flow import Flow
from jobwire.model import Event, Job, JobTree, State
from jobwire.queue import Queue

MOST_LINES, LONGEST_LINE = 200, 2000
MOST_STACKS, LONGEST_STACK = 5, 20_000
MOST_CHILDREN = 50
_EVENTS = 1000


async def draw(call: Call) -> View:
    store, queue = await call.queue()
    job_id = call.given("id")
    if not job_id:
        raise HTTPException(404, "The address names no job.")
    found = await store.ask(lambda: queue.get(job_id))
    if found is None:
        raise HTTPException(404, f"{queue.name} has no job {job_id!r}.")
    hide = call.board.redaction
    job = for_a_list(found, hide)
    logs, family, events = await asyncio.gather(
        store.part(Feature.LOGS, lambda: queue.logs(job_id, last=MOST_LINES + 1)),
        store.part(Feature.FLOWS, lambda: _family(store, queue, job)),
        _events(store, queue, job),
    )
    figures = figures_of(store, queue.name)
    spans = spans_of(job, events)
    acts = call.acts(store, job.state)
    lines = [hide.text(line, LONGEST_LINE) for line in (logs or ())[-MOST_LINES:]]
    return View(
        "job.html",
        _title(job),
        {
            "store": store,
            "queue": queue.name,
            "here": "job",
            "job": job,
            "figures": figures,
            "kind": class_of(job) if job.state is State.FAILED else "",
            "spans": spans,
            "earlier": _about_earlier(store) if any(span.kind == "earlier" for span in spans) else "",
            "picture": timeline(spans, "; ".join(span.words for span in spans)) if spans else "",
            "data": tree(job.data, hide),
            "result": tree(job.result, hide) if job.result is not None else None,
            "progress": tree(job.progress, hide) if job.progress not in (None, 0) else None,
            "percent": _percent(job),
            "raw": tree(dict(job.raw), hide) if job.raw else None,
            "error": shown_text(found.error, hide) if found.error else None,
            "stacks": [shown_text(stack, hide, LONGEST_STACK) for stack in found.stacktrace[-MOST_STACKS:]][::-1],
            "logs": lines if logs is not None else None,
            "logs_left_out": len(logs or ()) > MOST_LINES,
            "family": family,
            "acts": acts,
            "commands": [command(verb, store, queue.name, job.id) for verb in ("job", *(act.verb for act in acts))],
            "said": said(call),
            **tabs(store, figures),
        },
    )


def command(verb: str, store: Store, queue: str, job_id: str) -> str:
    """Returns the same action as a command line."""
    words = ["jobwire", verb, queue, job_id, "--url", store.where]
    return " ".join(shlex.quote(word) for word in words)


async def _family(store: Store, queue: Queue, job: Job) -> JobTree | None:
    """Returns the job with its children, or None if it has none."""
    async with Flow(store.connection) as flow:
        try:
            found = await flow.get(queue.name, job.id, depth=2, width=MOST_CHILDREN)
        except JobNotFound:
            return None
    return JobTree(found.job, tuple(in_order(found.children))) if found.children else None


async def _events(store: Store, queue: Queue, job: Job) -> Sequence[Event]:
    """Returns the last events of the queue if they may show earlier attempts of the job."""
    if job.attempts_made < 2:
        return ()
    return await store.part(Feature.EVENT_CONTROL, lambda: queue.admin.last_events(_EVENTS)) or ()


def _about_earlier(store: Store) -> str:
    """Returns the reason why earlier attempts are not drawn one by one."""
    if store.has(Feature.EVENT_CONTROL):
        return (
            "The queue's events don't go back to the earlier attempts. The store itself has the times of the last one."
        )
    return "This protocol keeps the times of the last attempt only, so the earlier ones can't be drawn one by one."


def _percent(job: Job) -> float | None:
    number = job.progress
    return (
        float(number)
        if isinstance(number, int | float) and not isinstance(number, bool) and 0 < number <= 100
        else None
    )


def _title(job: Job) -> str:
    name = f"{named(job.queue)} {job.id if len(job.id) <= 12 else f'{job.id[:8]}…'}"
    match job.state:
        case State.FAILED:
            attempts = f" after {counted(job.attempts_made, 'attempt')}" if job.attempts_made else ""
            return f"{name} failed{attempts}: {_cause(job)}"
        case State.COMPLETED:
            return f"{name} completed"
        case State.ACTIVE:
            return f"{name} runs" + (f" on {job.worker}" if job.worker else "")
        case State.CANCELLED:
            return f"{name} is cancelled"
        case State.WAITING_CHILDREN:
            return f"{name} waits for its children"
        case State.DELAYED:
            return f"{name} is delayed"
        case State.WAITING | State.PAUSED:
            return f"{name} waits"


def _cause(job: Job) -> str:
    """Returns the name of the exception, or else the beginning of the error."""
    kind, error = class_of(job), (job.error or "").strip().partition("\n")[0]
    return kind if kind == specific_class(f"{kind}:") or not error else capped(error, 100)[0]
