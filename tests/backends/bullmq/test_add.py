"""A job that we add is stored as Node BullMQ 5.62 stores it, alone or in a batch."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from jobwire import AddStatus
from jobwire.backends.bullmq.keys import Keys
from jobwire.backoff import Backoff
from jobwire.boundary import Added, Backend
from jobwire.errors import InvalidOption, JobNotFound, NotSupported, WrongState
from jobwire.options import Keep, NewJob, Parent, Unique

from .conftest import Same
from .jobs import add

QUEUE = "const q = queueOf(p); await q.waitUntilReady();"
RUN_ONE = "await work(p, 1, async () => ({ ok: 1 }));"

# What is there before, what Node then adds, what we add.
SCENARIOS = {
    "plain": ("", "await q.add('plain', { a: 1, s: 'é' });", [NewJob({"a": 1, "s": "é"}, name="plain")]),
    "null data": ("", "await q.add('n', null);", [NewJob(None, name="n")]),
    "first of the line": (
        "await q.add('old', {});",
        "await q.add('n', {}, { lifo: true }); await q.add('m', {});",
        [NewJob({}, name="n", lifo=True), NewJob({}, name="m")],
    ),
    "priorities": (
        "",
        "await q.add('n', {}, { priority: 5 }); await q.add('n', {}, { priority: 1 }); await q.add('n', {});",
        [NewJob({}, name="n", priority=5), NewJob({}, name="n", priority=1), NewJob({}, name="n")],
    ),
    "delayed": (
        "await q.add('first', {}, { delay: 1000000 });",
        "await q.add('n', {}, { delay: 60000, priority: 2 });",
        [NewJob({}, name="n", delay=60, priority=2)],
    ),
    "own id, twice": (
        "await q.add('n', {}, { jobId: 'my-id' });",
        "await q.add('n', {}, { jobId: 'my-id' }); await q.add('m', {});",
        [NewJob({}, name="n", id="my-id"), NewJob({}, name="m")],
    ),
    "own id, twice in one batch": (
        "",
        "await q.add('n', {}, { jobId: 'my-id' }); await q.add('n', {}, { jobId: 'my-id' });",
        [NewJob({}, name="n", id="my-id"), NewJob({}, name="n", id="my-id")],
    ),
    "options": (
        "",
        """await q.add('n', {}, { attempts: 3, backoff: { type: 'exponential', delay: 200, jitter: 0.5 },
             removeOnComplete: { count: 10, age: 60 }, removeOnFail: true, keepLogs: 5, stackTraceLimit: 2 });
           await q.add('n', {}, { backoff: 100, removeOnComplete: 7, removeOnFail: false });
           await q.add('n', {}, { backoff: { type: 'own', delay: 5 } });""",
        [
            NewJob(
                {},
                name="n",
                attempts=3,
                backoff=Backoff.exponential(0.2, jitter=0.5),
                keep_completed=Keep(10, timedelta(minutes=1)),
                keep_failed=Keep.NONE,
                extra={"keepLogs": 5, "stackTraceLimit": 2},
            ),
            NewJob({}, name="n", backoff=Backoff.fixed(0.1), keep_completed=7, keep_failed=Keep.ALL),
            NewJob({}, name="n", backoff=Backoff.custom("own", 0.005)),
        ],
    ),
    "while paused": (
        "await q.add('old', {}); await q.pause();",
        "await q.add('n', {}); await q.add('n', {}, { priority: 4 }); await q.add('n', {}, { delay: 60000 });",
        [NewJob({}, name="n"), NewJob({}, name="n", priority=4), NewJob({}, name="n", delay=60)],
    ),
    "at the global concurrency": (
        """await q.add('old', {}); await q.setGlobalConcurrency(1);
           const w = new Worker('q', null, { connection, prefix: p, autorun: false });
           await w.getNextJob('<uuid>:0', { block: false }); await (await q.client).del(`${p}:q:marker`);""",
        "await q.add('n', {});",
        [NewJob({}, name="n")],
    ),
    "unique": (
        "await q.add('n', {}, { deduplication: { id: 'k' } });",
        "await q.add('n', {}, { deduplication: { id: 'k' } }); await q.add('n', {}, { deduplication: { id: 'j' } });",
        [NewJob({}, name="n", unique=Unique("k")), NewJob({}, name="n", unique=Unique("j"))],
    ),
    "unique for a time": (
        "await q.add('n', {}, { deduplication: { id: 'k', ttl: 60000 } });",
        """await q.add('n', {}, { deduplication: { id: 'k', ttl: 60000 } });
           await q.add('n', {}, { deduplication: { id: 'k', ttl: 90000, extend: true } });
           await q.add('n', {}, { deduplication: { id: 'j', ttl: 60000, extend: true } });""",
        [
            NewJob({}, name="n", unique=Unique("k", ttl=60)),
            NewJob({}, name="n", unique=Unique("k", ttl=90, extend=True)),
            NewJob({}, name="n", unique=Unique("j", ttl=60, extend=True)),
        ],
    ),
    "unique, the newer one counts": (
        """await q.add('n', {}, { delay: 60000, deduplication: { id: 'k', replace: true } });
           await q.add('n', {}, { delay: 60000, deduplication: { id: 't', ttl: 70000, replace: true } });
           await q.add('n', {}, { deduplication: { id: 'runs', replace: true } });""",
        """await q.add('new', {}, { delay: 60000, deduplication: { id: 'k', replace: true } });
           await q.add('new', {}, { delay: 60000, deduplication: { id: 't', ttl: 70000, replace: true } });
           await q.add('new', {}, { delay: 60000,
             deduplication: { id: 't', ttl: 70000, extend: true, replace: true } });
           await q.add('new', {}, { delay: 60000, deduplication: { id: 'runs', replace: true } });""",
        [
            NewJob({}, name="new", delay=60, unique=Unique("k", replace=True)),
            NewJob({}, name="new", delay=60, unique=Unique("t", ttl=70, replace=True)),
            NewJob({}, name="new", delay=60, unique=Unique("t", ttl=70, extend=True, replace=True)),
            NewJob({}, name="new", delay=60, unique=Unique("runs", replace=True)),
        ],
    ),
    "child": (
        "const r = queueOf(p, 'r'); await r.add('R', {}, { jobId: 'R' });",
        """const parent = { id: 'R', queue: `${p}:r` };
           await q.add('n', {}, { parent }); await q.add('n', {}, { parent, failParentOnFailure: true });
           await q.add('n', {}, { parent, continueParentOnFailure: true, priority: 1 });
           await q.add('n', {}, { parent, ignoreDependencyOnFailure: true, delay: 60000 });
           await q.add('n', {}, { parent, removeDependencyOnFailure: true });""",
        [
            NewJob({}, name="n", parent=Parent("R", "r")),
            NewJob({}, name="n", parent=Parent("R", "r", on_failure="fail")),
            NewJob({}, name="n", parent=Parent("R", "r", on_failure="continue"), priority=1),
            NewJob({}, name="n", parent=Parent("R", "r", on_failure="ignore"), delay=60),
            NewJob({}, name="n", parent=Parent("R", "r", on_failure="remove")),
        ],
    ),
    "child that is there already": (
        "const r = queueOf(p, 'r'); await r.add('R', {}, { jobId: 'R' }); await q.add('c', {}, { jobId: 'c' });",
        "await q.add('c', {}, { jobId: 'c', parent: { id: 'R', queue: `${p}:r` } });",
        [NewJob({}, name="c", id="c", parent=Parent("R", "r"))],
    ),
    "child that has completed already": (
        f"""const r = queueOf(p, 'r'); await q.add('c', {{}}, {{ jobId: 'c' }}); {RUN_ONE}
            await new FlowProducer({{ connection, prefix: p }}).add({{ name: 'R', queueName: 'r',
              opts: {{ jobId: 'R' }}, children: [{{ name: 'd', queueName: 'q', opts: {{ jobId: 'd' }} }}] }});
            await (await q.client).del(`${{p}}:r:R:dependencies`);""",
        "await q.add('c', {}, { jobId: 'c', parent: { id: 'R', queue: `${p}:r` } });",
        [NewJob({}, name="c", id="c", parent=Parent("R", "r"))],
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_is_stored_as_node_stores_it(scenario: str, same_as_node: Same) -> None:
    arrange, theirs, ours = SCENARIOS[scenario]
    await same_as_node(f"{QUEUE} {arrange}", f"{QUEUE} {theirs}", lambda backend: add(backend, *ours))


async def test_a_parent_that_waits_for_children_is_stored_as_a_flow_of_node(same_as_node: Same) -> None:
    await same_as_node(
        QUEUE,
        """await new FlowProducer({ connection, prefix: p }).add({ name: 'R', queueName: 'q', data: { r: 1 },
             opts: { jobId: 'R', priority: 3 },
             children: [
               { name: 'a', queueName: 'q', data: {}, opts: { jobId: 'a', failParentOnFailure: true } }] });""",
        lambda backend: add(
            backend,
            NewJob({"r": 1}, name="R", id="R", priority=3, extra={"waitingChildren": True}),
            NewJob({}, name="a", id="a", parent=Parent("R", "q", on_failure="fail")),
        ),
    )


async def test_a_queue_is_registered_with_its_limit_of_events(backend: Backend, redis: Redis, keys: Keys) -> None:
    await backend.register("q")
    assert await redis.hget(keys.meta, "opts.maxLenEvents") == b"10000"
    assert (await redis.hget(keys.meta, "version")).startswith(b"jobwire:")


async def test_a_batch_is_answered_in_order(backend: Backend) -> None:
    unique = Unique("k")
    answers = await add(
        backend, NewJob(1), NewJob(2, id="own"), NewJob(3, id="own"), NewJob(4, unique=unique), NewJob(5, unique=unique)
    )
    assert list(answers) == [
        Added("1"),
        Added("own"),
        Added("own", AddStatus.DUPLICATE),
        Added("4"),
        Added("4", AddStatus.DUPLICATE),
    ]


async def test_thousands_of_jobs_keep_their_order_and_take_consecutive_numbers(
    backend: Backend, redis: Redis, keys: Keys
) -> None:
    answers = await add(backend, *(NewJob(number) for number in range(2345)))
    assert [answer.id for answer in answers] == [str(number) for number in range(1, 2346)]
    waiting = [job_id.decode() for job_id in await redis.lrange(keys.wait, 0, -1)]
    assert waiting == [str(number) for number in range(2345, 0, -1)]
    assert await redis.zrange(keys.marker, 0, -1, withscores=True) == [(b"0", 0.0)]


async def test_jobs_due_in_the_same_millisecond_keep_their_order(backend: Backend, redis: Redis, keys: Keys) -> None:
    due = datetime(2030, 1, 1, tzinfo=UTC)
    stamp = round(due.timestamp() * 1000)
    await add(backend, *(NewJob(number, run_at=due, extra={"timestamp": stamp - 5000}) for number in range(3)))
    delays = [int(await redis.hget(keys.job(str(number)), "delay")) for number in (1, 2, 3)]
    scores = [score for _, score in await redis.zrange(keys.delayed, 0, -1, withscores=True)]
    first = (stamp - 5000 + delays[0]) * 4096
    assert scores == [first, first + 1, first + 2]


async def test_large_jobs_travel_in_several_batches(backend: Backend, redis: Redis, keys: Keys) -> None:
    text = "x" * 400_000
    await add(backend, *(NewJob(text, id=f"job-{number}") for number in range(5)))
    assert await redis.llen(keys.wait) == 5
    assert json.loads(await redis.hget(keys.job("job-4"), "data")) == text


async def test_a_missing_parent_is_told_before_anything_is_written(backend: Backend, redis: Redis, keys: Keys) -> None:
    with pytest.raises(JobNotFound, match="'nobody'"):
        await add(backend, NewJob(1), NewJob(2, parent=Parent("nobody", "q")))
    assert not await redis.exists(keys.id, keys.wait)


async def test_a_child_of_another_living_parent_is_refused(backend: Backend) -> None:
    await add(backend, NewJob(1, id="R"), NewJob(1, id="S"), NewJob(2, id="c", parent=Parent("R", "q")))
    with pytest.raises(WrongState, match="another parent"):
        await add(backend, NewJob(2, id="c", parent=Parent("S", "q")))


async def test_a_job_id_whose_key_is_not_a_job_spoils_only_itself(backend: Backend, redis: Redis, keys: Keys) -> None:
    await redis.set(keys.job("odd"), "text")
    with pytest.raises(Exception, match="WRONGTYPE"):
        await add(backend, NewJob(1), NewJob(2, id="odd"), NewJob(3))
    assert await redis.lrange(keys.wait, 0, -1) == [b"3", b"1"]


@pytest.mark.parametrize(
    ("job", "rule"),
    [
        (NewJob(1, id="17"), "integer"),
        (NewJob(1, id="0:1"), "0:"),
        (NewJob(1, id="a:b"), "':'"),
        (NewJob(1, id="wait"), "own keys"),
        (NewJob(1, priority=2_097_152), "2097151"),
        (NewJob(1, priority=-1), "between 0"),
        (NewJob(1, backoff=Backoff.fixed(1, cap=5)), "max_backoff"),
        (NewJob(1, parent=Parent("R", "a:b")), "':'"),
        (NewJob(1, extra={"color": 1}), "not an option"),
        (NewJob(1, extra={"keepLogs": -1}), "at least 0"),
        (NewJob(1, extra={"waitingChildren": 1}), "true or false"),
    ],
)
def test_what_bullmq_could_not_hold_is_refused(backend: Backend, job: NewJob, rule: str) -> None:
    with pytest.raises(InvalidOption, match=rule):
        backend.check("q", job)


def test_an_id_of_three_parts_is_allowed(backend: Backend) -> None:
    backend.check("q", NewJob(1, id="order:7:mail"))


async def test_an_option_that_older_workers_would_lose_jobs_by_is_refused(backend: Backend) -> None:
    with pytest.raises(NotSupported, match=r"no keepLastIfActive in version 5\.62; .* older than 5\.72") as refused:
        backend.check("q", NewJob(1, unique=Unique("k"), extra={"keepLastIfActive": True}))
    assert refused.value.protocol == "BullMQ"
