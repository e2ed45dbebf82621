"""A job that we claim and settle leaves the store as Node BullMQ 5.62 leaves it, to the last field and event."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from jobwire import Rate
from jobwire.boundary import Backend, Claim, Completed, Consumer, Failed, Released, Snoozed
from jobwire.native import BullMQWorker
from jobwire.options import Keep

from .conftest import Same
from .jobs import claim, consumer

# Node's own steps, without its loop: one token, one job at a time.
WORKER = """
const token = "00000000-0000-4000-8000-000000000000:0";
const q = queueOf(p); const r = queueOf(p, "r"); await q.waitUntilReady();
const worker = (opts) => {
  const w = new Worker("q", null, { connection, prefix: p, autorun: false, ...opts });
  w.on("error", () => {}); return w;
};
const next = (w) => w.getNextJob(token, { block: false });
"""
FLOW = """
const children = (specs) => new FlowProducer({ connection, prefix: p }).add({
  name: "R", queueName: "r", opts: { jobId: "R", PARENT },
  children: specs.map(([id, opts]) => ({ name: id, queueName: "q", opts: { jobId: id, ...opts } })) });
"""

Act = Callable[[Consumer, Backend], Awaitable[object]]


def completing(count: int = 1, wanted: int = 1) -> Act:
    async def act(worker: Consumer, backend: Backend) -> None:
        claims = await claim(worker)
        for _ in range(count):
            settled = await worker.settle([Completed(one, b'{"ok":1}') for one in claims], wanted)
            claims = list(settled.claims)

    return act


def failing(times: int = 1, *, final: bool = False, wanted: int = 1) -> Act:
    async def act(worker: Consumer, backend: Backend) -> None:
        for _ in range(times):
            [one] = await claim(worker)
            await worker.settle([Failed(one, "boom", "Error: boom\n    at x", final=final)], wanted)

    return act


def doing(outcome: Callable[[Claim], Any], wanted: int = 0) -> Act:
    async def act(worker: Consumer, backend: Backend) -> None:
        [one] = await claim(worker)
        await worker.settle([outcome(one)], wanted)

    return act


async def picking_up(worker: Consumer, backend: Backend) -> None:
    await claim(worker)


async def _twice(worker: Consumer, backend: Backend) -> None:
    await claim(worker)
    await claim(worker)


async def _complete_and_claim(worker: Consumer, backend: Backend) -> None:
    [one] = await claim(worker)
    await worker.settle([Completed(one, b'{"ok":1}')], 1)
    await claim(worker)


async def _three_one_by_one(worker: Consumer, backend: Backend) -> None:
    for _ in range(3):
        [one] = await claim(worker)
        await worker.settle([Completed(one, b'{"ok":1}')], 0)
        await asyncio.sleep(0.003)


async def _complete_while_paused(worker: Consumer, backend: Backend) -> None:
    [one] = await claim(worker)
    await backend.pause.pause("q")
    await worker.settle([Completed(one, b'{"ok":1}')], 1)


async def _fail_while_paused(worker: Consumer, backend: Backend) -> None:
    [one] = await claim(worker)
    await backend.pause.pause("q")
    await worker.settle([Failed(one, "boom", "Error: boom")], 0)


COMPLETE = "const j = await next(w); await j.moveToCompleted({ ok: 1 }, token, true);"
FAIL = "const j = await next(w); await j.moveToFailed(new Error('boom'), token, true);"
ADD = "await q.add('n', { a: 1 });"

# What is there before, what Node does with `w`, options of both workers, what we do.
SCENARIOS: dict[str, tuple[str, str, str, dict[str, Any], Act]] = {
    "pick up": (ADD, "await next(w);", "{ name: 'wname' }", {"name": "wname"}, picking_up),
    "pick up nothing": ("", "await next(w);", "{}", {}, picking_up),
    "pick up a priority": ("await q.add('n', {}, { priority: 2 });", "await next(w);", "{}", {}, picking_up),
    "pick up behind a marker of bullmq 4": (
        ADD + "await (await q.client).rpush(`${p}:q:wait`, '0:7');",
        "await next(w);",
        "{}",
        {},
        picking_up,
    ),
    "pick up a due job": (
        "await q.add('n', {}, { delay: 1 }); await q.add('m', {}, { delay: 2, priority: 3 }); await q.add('o', {});"
        "await until(async () => Date.now() > (await q.getJob('2')).timestamp + 5);",
        "await next(w);",
        "{}",
        {},
        picking_up,
    ),
    "pick up while paused": (ADD + "await q.pause();", "await next(w);", "{}", {}, picking_up),
    "pick up at the global concurrency": (
        ADD + ADD + "await q.setGlobalConcurrency(1);",
        "await next(w); await next(w);",
        "{}",
        {},
        _twice,
    ),
    "pick up within a rate": (
        ADD + ADD,
        "await next(w); await next(w);",
        "{ limiter: { max: 1, duration: 60000 } }",
        {"rate": Rate(1, per=60)},
        _twice,
    ),
    "pick up an entry without a job": (
        "await (await q.client).lpush(`${p}:q:wait`, 'ghost');",
        "await next(w);",
        "{}",
        {},
        picking_up,
    ),
    "complete, then nothing": (ADD, COMPLETE, "{}", {}, completing()),
    "complete, then the next": (ADD + ADD, COMPLETE, "{}", {}, completing()),
    "complete, with a delayed job behind": (
        ADD + "await q.add('n', {}, { delay: 60000 });",
        COMPLETE,
        "{}",
        {},
        completing(),
    ),
    "complete, without a next": (
        ADD,
        "const j = await next(w); await j.moveToCompleted({ ok: 1 }, token, false);",
        "{}",
        {},
        completing(wanted=0),
    ),
    "complete, then paused": (
        ADD + ADD,
        "const j = await next(w); await q.pause(); await j.moveToCompleted({ ok: 1 }, token, true);",
        "{}",
        {},
        _complete_while_paused,
    ),
    "complete and keep none": ("await q.add('n', {}, { removeOnComplete: true });", COMPLETE, "{}", {}, completing()),
    "complete and keep one": (
        "await q.addBulk([1, 2, 3].map(() => ({ name: 'n', opts: { removeOnComplete: 1 } })));",
        "for (let i = 0; i < 3; i++) { const j = await next(w); await j.moveToCompleted({ ok: 1 }, token, false);"
        " await new Promise((go) => setTimeout(go, 3)); }",
        "{}",
        {},
        _three_one_by_one,
    ),
    "complete and keep by the worker's rule": (
        ADD,
        COMPLETE,
        "{ removeOnComplete: { count: 0 } }",
        {"keep_completed": Keep(count=0)},
        completing(),
    ),
    "complete with metrics": (
        ADD + ADD,
        COMPLETE + "await next(w);",
        "{ metrics: { maxDataPoints: 5 } }",
        {"native": BullMQWorker(metrics=5)},
        _complete_and_claim,
    ),
    "complete a unique job": (
        "await q.add('n', {}, { deduplication: { id: 'k' } });"
        "await q.add('n', {}, { deduplication: { id: 't', ttl: 60000 } });",
        COMPLETE + "await next(w);",
        "{}",
        {},
        _complete_and_claim,
    ),
    "complete a child, the last": (
        FLOW.replace("PARENT", "priority: 0") + "await children([['c', {}]]);",
        COMPLETE,
        "{}",
        {},
        completing(),
    ),
    "complete a child of a prioritized parent": (
        FLOW.replace("PARENT", "priority: 4") + "await children([['c', { removeOnComplete: true }]]);",
        COMPLETE,
        "{}",
        {},
        completing(),
    ),
    "complete a child of a delayed parent": (
        FLOW.replace("PARENT", "delay: 60000") + "await children([['c', {}]]);",
        COMPLETE,
        "{}",
        {},
        completing(),
    ),
    "complete a child, not the last": (
        FLOW.replace("PARENT", "priority: 0") + "await children([['c', {}], ['d', {}]]);",
        "const j = await next(w); await j.moveToCompleted({ ok: 1 }, token, false);",
        "{}",
        {},
        completing(wanted=0),
    ),
    "fail for good": (ADD, FAIL, "{}", {}, failing()),
    "fail for good with attempts left": (
        "await q.add('n', {}, { attempts: 3 });",
        "const j = await next(w); await j.moveToFailed(new UnrecoverableError('boom'), token, true);",
        "{}",
        {},
        failing(final=True),
    ),
    "fail and keep none": ("await q.add('n', {}, { removeOnFail: true });", FAIL, "{}", {}, failing()),
    "fail, then again later": (
        "await q.add('n', {}, { attempts: 3, backoff: { type: 'exponential', delay: 60000 } });",
        FAIL,
        "{}",
        {},
        failing(wanted=0),
    ),
    "fail, then again at once": (
        "await q.add('n', {}, { attempts: 3 }); await q.add('m', {});",
        FAIL,
        "{}",
        {},
        failing(wanted=0),
    ),
    "fail, then again at once and first": (
        "await q.add('n', {}, { attempts: 3, lifo: true }); await q.add('m', {});",
        FAIL,
        "{}",
        {},
        failing(wanted=0),
    ),
    "fail, then again at once with a priority": (
        "await q.add('n', {}, { attempts: 3, priority: 2 }); await q.add('m', {}, { priority: 2 });",
        FAIL,
        "{}",
        {},
        failing(wanted=0),
    ),
    "fail until no attempt is left": (
        "await q.add('n', {}, { attempts: 2, stackTraceLimit: 1 });",
        "for (let i = 0; i < 2; i++) {"
        " const j = await next(w); await j.moveToFailed(new Error('boom'), token, false); }",
        "{}",
        {},
        failing(2, wanted=0),
    ),
    "fail while paused": (
        "await q.add('n', {}, { attempts: 2 });",
        "const j = await next(w); await q.pause(); await j.moveToFailed(new Error('boom'), token, false);",
        "{}",
        {},
        _fail_while_paused,
    ),
    "hand back": (
        ADD + ADD,
        "const j = await next(w); await j.moveToWait(token);",
        "{}",
        {},
        doing(Released),
    ),
    "hand back a priority": (
        "await q.add('n', {}, { priority: 2 });",
        "const j = await next(w); await j.moveToWait(token);",
        "{}",
        {},
        doing(Released),
    ),
    "put off": (
        ADD,
        # The delay is kept beside the moment, and Node works it out from a second look at the clock.
        """const j = await next(w), clock = Date.now, now = clock();
        Date.now = () => now; await j.moveToDelayed(now + 60000, token); Date.now = clock;""",
        "{}",
        {},
        doing(lambda one: Snoozed(one, 60.0)),
    ),
}
for _flag in (
    "failParentOnFailure",
    "continueParentOnFailure",
    "ignoreDependencyOnFailure",
    "removeDependencyOnFailure",
):
    for _others, _specs in (("with another pending", "['c', F], ['d', {}]"), ("the last", "['c', F]")):
        SCENARIOS[f"fail a child, {_flag}, {_others}"] = (
            FLOW.replace("PARENT", "priority: 0") + f"const F = {{ {_flag}: true }}; await children([{_specs}]);",
            "const j = await next(w); await j.moveToFailed(new Error('boom'), token, false);",
            "{}",
            {},
            failing(wanted=0),
        )
SCENARIOS["fail a child of a delayed parent"] = (
    """await r.add("R", {}, { jobId: "R", delay: 60000 });
       await q.add("c", {}, { jobId: "c", failParentOnFailure: true, parent: { id: "R", queue: `${p}:r` } });""",
    "const j = await next(w); await j.moveToFailed(new Error('boom'), token, false);",
    "{}",
    {},
    failing(wanted=0),
)
SCENARIOS["fail a child that is not kept"] = (
    FLOW.replace("PARENT", "priority: 0") + "await children([['c', { removeOnFail: true }]]);",
    "const j = await next(w); await j.moveToFailed(new Error('boom'), token, false);",
    "{}",
    {},
    failing(wanted=0),
)


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_leaves_what_node_leaves(scenario: str, same_as_node: Same) -> None:
    arrange, theirs, options, settings, act = SCENARIOS[scenario]

    async def ours(backend: Backend) -> None:
        worker = consumer(backend, **settings)
        # Node takes the next job under the token of the last one; ours counts its calls.
        worker._turns = itertools.repeat(0)  # type: ignore[attr-defined]
        await act(worker, backend)

    await same_as_node(f"{WORKER} {arrange}", f"{WORKER} const w = worker({options}); {theirs}", ours)
