"""Actions: a page that shows what will be done, then the deed, then a redirect to a page that states the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from urllib.parse import quote_plus

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from jobwire.counted import counted
from jobwire.dashboard.actions import ACTS, MOST_JOBS, Act, do, recorded
from jobwire.dashboard.board import Call
from jobwire.dashboard.bulk import BulkAct
from jobwire.dashboard.forms import BODY_LIMIT
from jobwire.dashboard.links import link
from jobwire.dashboard.pages.outcome import outcome
from jobwire.dashboard.pages.queue import figures_of, tabs
from jobwire.dashboard.render import View, page
from jobwire.dashboard.selection import PARAMETERS, Selection, for_a_list, read, selection_of
from jobwire.dashboard.store import Store
from jobwire.durations import RULE, seconds_in
from jobwire.errors import InvalidOption
from jobwire.figures import QueueFigures
from jobwire.model import Job, State
from jobwire.queue import Queue
from jobwire.rate import Rate
from jobwire.serving.tokens import Role

Fields = Mapping[str, Sequence[str]]
SHOWN = 20
_LOOKED_AT = 10_000
_AT_ONCE = 8
_FIELD, _OTHER_FIELDS = len("&id="), 8192
"""Characters that a form needs beside the ids: for each, and for its other fields."""


async def preview(call: Call, fields: Fields) -> Response:
    """Shows the jobs that an action would change: the selected ones, or all that the filters find. If these are more
    than a form can name, the action is done in the background to all that match."""
    act, store, queue = await _act(call, fields)
    ids = list(dict.fromkeys(fields.get("id", [])))
    figures = figures_of(store, queue.name)
    looked_at, more, chosen = 0, False, None
    if not ids:
        chosen = _matching(fields)
        if chosen is None:
            raise HTTPException(400, "No job is selected. Go back and select the jobs first.")
        found = await store.ask(lambda: read(queue, chosen, call.board.redaction, enough=MOST_JOBS, most=_LOOKED_AT))
        ids = [job.id for job in found.jobs[:MOST_JOBS]]
        looked_at, more = found.looked_at, found.cursor is not None or len(found.jobs) > MOST_JOBS
    _check_number(ids)
    in_background = chosen is not None and (more or not _fits(ids))
    slots = asyncio.Semaphore(_AT_ONCE)

    async def get(job_id: str) -> Job | None:
        async with slots:
            return await queue.get(job_id)

    jobs = await store.ask(lambda: asyncio.gather(*map(get, ids[:SHOWN])))
    if more and not chosen:
        figures = await store.count(queue.name)
    number = _number(ids, chosen, figures, more=more)
    view = View(
        "preview.html",
        f"{act.verb.capitalize()} {number} of {queue.name}?" if ids or more else f"There are no jobs to {act.verb}",
        {
            "store": store,
            "queue": queue.name,
            "here": "preview",
            "figures": figures,
            "act": act,
            "ids": ids,
            "given": chosen.given if chosen is not None and in_background else None,
            "number": number,
            "jobs": [for_a_list(job, call.board.redaction) for job in jobs if job is not None],
            "looked_at": looked_at,
            "more": more,
            "state": one_of(fields, "state"),
            "back": _back(store, queue, one_of(fields, "state")),
            **tabs(store, figures),
        },
    )
    return page(view, call)


def _matching(fields: Fields) -> Selection | None:
    """Returns the selection of a form that asks for all jobs that match, or None."""
    if one_of(fields, "which") != "matching":
        return None
    return selection_of({name: one_of(fields, name) for name in PARAMETERS})


def _fits(ids: Sequence[str]) -> bool:
    """Returns True if a form with these ids is not refused for its size."""
    return sum(len(quote_plus(job_id)) + _FIELD for job_id in ids) < BODY_LIMIT - _OTHER_FIELDS


def _number(ids: Sequence[str], chosen: Selection | None, figures: QueueFigures, *, more: bool) -> str:
    """Returns how many jobs would be changed, as far as that is known."""
    if not more or chosen is None:
        return counted(len(ids), "job")
    if chosen:
        return f"all jobs that match, {len(ids):,} or more,"
    return f"all {figures.counts.get(chosen.state, len(ids)):,} {chosen.state.value.replace('_', ' ')} jobs"


async def act(call: Call, fields: Fields) -> Response:
    """Does it to the jobs that the form names, or begins to do it to all that match."""
    act, store, queue = await _act(call, fields)
    ids = list(dict.fromkeys(fields.get("id", [])))
    _check_number(ids)
    chosen = None if ids else _matching(fields)
    if (act.needs_preview or chosen is not None) and one_of(fields, "confirmed") != "yes":
        raise HTTPException(400, f"To {act.verb} jobs needs a confirmation.")
    if chosen is not None:
        if chosen.state not in act.states:
            raise HTTPException(400, f"Jobs that are {chosen.state.value} can't be {act.past}.")
        expected = figures_of(store, queue.name).counts.get(chosen.state, 0)
        begun = BulkAct(act, store.name, queue.name, chosen, call.caller, expected)
        call.board.bulk.start(begun, store, call.board.redaction)
        return _see(link("progress", store=store.name, queue=queue.name, act=begun.key))
    answers = await do(act, queue, ids, call.caller, store.name)
    store.outdate()
    did = outcome(act.verb, answers)
    if len(ids) == 1 and one_of(fields, "from") == "job":
        return _see(link("job", store=store.name, queue=queue.name, id=ids[0], **did))
    return _see(_back(store, queue, one_of(fields, "state"), **did))


async def pause(call: Call, fields: Fields) -> Response:
    """Pauses the queue."""
    store, queue = await _queue(call, fields, Role.OPERATOR)
    with _recorded(call, store, queue, "pause"):
        await store.ask(queue.admin.pause)
    return _queue_done(store, queue, "pause")


async def resume(call: Call, fields: Fields) -> Response:
    """Ends the pause of the queue."""
    store, queue = await _queue(call, fields, Role.OPERATOR)
    with _recorded(call, store, queue, "resume"):
        await store.ask(queue.admin.resume)
    return _queue_done(store, queue, "resume")


async def limits(call: Call, fields: Fields) -> Response:
    """Sets both limits of the queue. An empty field removes one."""
    store, queue = await _queue(call, fields, Role.ADMIN)
    concurrency, jobs, per = (one_of(fields, name).strip() for name in ("concurrency", "jobs", "per"))
    running = _whole("concurrency", concurrency) if concurrency else None
    rate = Rate(_whole("jobs", jobs), _period(per)) if jobs else None
    starts = f"{rate.jobs} in {rate.per:g} s" if rate is not None else "without limit"
    with _recorded(call, store, queue, f"limits (running: {running or 'without limit'}, starts: {starts})"):
        await store.ask(lambda: queue.admin.limit_concurrency(running))
        await store.ask(lambda: queue.admin.limit_rate(rate))
    return _queue_done(store, queue, "limits")


def _recorded(call: Call, store: Store, queue: Queue, what: str) -> AbstractContextManager[None]:
    return recorded(call.caller, what, f"store {store.name!r}, queue {queue.name!r}")


def _queue_done(store: Store, queue: Queue, verb: str) -> Response:
    store.outdate()
    return _see(link("queue", store=store.name, queue=queue.name, did=verb))


async def _act(call: Call, fields: Fields) -> tuple[Act, Store, Queue]:
    chosen = ACTS.get(one_of(fields, "verb"))
    if chosen is None:
        raise HTTPException(400, "There is no such action.")
    store, queue = await _queue(call, fields, chosen.role)
    if chosen.feature is not None:
        queue.capabilities.require(chosen.feature)
    return chosen, store, queue


def check_role(call: Call, needed: Role) -> None:
    """Raises HTTPException 403 if the caller may not act in this role."""
    if not call.board.allow_actions:
        raise HTTPException(403, "This dashboard only reads: it was started without actions.")
    if not call.may(needed):
        raise HTTPException(403, f"This needs the role {needed}; you have the role {call.caller.role}.")


async def _queue(call: Call, fields: Fields, needed: Role) -> tuple[Store, Queue]:
    check_role(call, needed)
    store = call.store(one_of(fields, "store"))
    return store, await store.queue(one_of(fields, "queue") or " ")


def _check_number(ids: Sequence[str]) -> None:
    if len(ids) > MOST_JOBS:
        raise InvalidOption("id", f"{len(ids)} ids", f"at most {MOST_JOBS} jobs can be changed at once")


def one_of(fields: Fields, name: str) -> str:
    """Returns the first value of a field, or an empty text."""
    return fields.get(name, [""])[0]


def _back(store: Store, queue: Queue, state: str, **did: str | int | None) -> str:
    known = state if state in list(State) else None
    return link("jobs", store=store.name, queue=queue.name, state=known, **did)


def _see(where: str) -> Response:
    return RedirectResponse(where, 303)


def _whole(name: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text[:12]) < 10**9:
        raise InvalidOption(name, text, "must be a whole number from 1 on, or empty for no limit")
    return int(text)


def _period(text: str) -> float:
    found = seconds_in(text or "1s")
    if found is None:
        raise InvalidOption("per", text, RULE)
    return found
