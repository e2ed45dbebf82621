"""The progress of an action on many jobs, and the last ones on the queue."""

from __future__ import annotations

from jobwire.counted import counted
from jobwire.dashboard.board import Call
from jobwire.dashboard.bulk import BulkAct
from jobwire.dashboard.pages.queue import figures_of, tabs
from jobwire.dashboard.render import View

_MOST = 20


async def draw(call: Call) -> View:
    store, queue = call.store(), call.given("queue")
    known = list(call.board.bulk.of_queue(store.name, queue))
    if not known:  # otherwise it is shown also if the action has left no queue
        await call.queue()
    await store.fresh()
    wanted = call.given("act")
    acts = [one for one in known if not wanted or one.key == wanted][:_MOST]
    figures = figures_of(store, queue)
    return View(
        "progress.html",
        _title(queue, acts),
        {
            "store": store,
            "queue": queue,
            "here": "progress",
            "figures": figures,
            "acts": acts,
            "running": any(not one.ended for one in acts),
            **tabs(store, figures),
        },
    )


def _title(queue: str, acts: list[BulkAct]) -> str:
    if not acts:
        return f"{queue}: no action on many jobs is known"
    one = acts[0]
    jobs = f"{one.act.past.capitalize()} {counted(one.done, 'job')} of {queue}"
    refused = sum(one.refused.values())
    not_done = f", {refused:,} not" if refused else ""
    if not one.ended:
        return f"{jobs} so far{not_done}"
    return f"{jobs}{not_done}" if one.ended == "done" else f"{jobs}{not_done}; then it {one.ended.partition(':')[0]}"
