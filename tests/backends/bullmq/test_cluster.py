"""A cluster of three masters: every script runs there, all keys of a queue lie in one slot, and nothing else passes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest
from redis.asyncio import Redis, RedisCluster
from redis.exceptions import ResponseError

from awaiting import eventually
from jobwire import InvalidOption, NewJob, Queue, Rate, State, Worker, connect
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.redisio import scripts as redisio_scripts
from jobwire.boundary import Completed, Failed, Parked
from jobwire.connection import Connection
from jobwire.doctor import examine, fix
from jobwire.embedded import Cluster
from jobwire.flow import Flow, FlowJob
from jobwire.options import Parent, Unique
from jobwire.worker.active import ActiveJob

from .jobs import claim, consumer
from .peer import node

PACKAGE = "jobwire.backends.bullmq"
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Place:
    """Where a test's queues are: a prefix, and a queue that lies in one slot with `other`."""

    prefix: str
    queue: str
    other: str


@pytest.fixture(params=["tagged prefix", "tagged name"])
def place(request: pytest.FixtureRequest, unique: str) -> Place:
    if request.param == "tagged prefix":
        return Place(f"{{{unique}}}", "letters", "parcels")
    return Place(unique, f"letters-{{{unique}}}", f"parcels-{{{unique}}}")


@asynccontextmanager
async def connected(cluster: Cluster, prefix: str) -> AsyncIterator[Connection]:
    connection = connect(f"bullmq+cluster://{cluster.hosts}/?prefix={prefix}")
    async with connection:
        yield connection


async def keys_of(cluster: Cluster, prefix: str) -> dict[str, list[str]]:
    """The keys that start with the prefix, by the node that has them."""
    found: dict[str, list[str]] = {}
    for url in cluster.urls:
        async with Redis.from_url(url, decode_responses=True) as one:
            keys = [key async for key in one.scan_iter(count=5000) if key.startswith(prefix)]
            if keys:
                found[url] = keys
    return found


async def flush_scripts(cluster: Cluster) -> None:
    for url in cluster.urls:
        async with Redis.from_url(url) as one:
            await one.script_flush()


async def use_everything(connection: Connection, place: Place) -> None:
    """One pass through all that a queue can do."""
    backend = connection.backend
    async with Queue(place.queue, connection) as queue, Queue(place.other, connection) as other:
        worker, carrier = consumer(backend, place.queue), consumer(backend, place.other)
        await queue.add_many([NewJob(1), NewJob(2, priority=3), NewJob(3, delay=60), NewJob(4, unique=Unique("k"))])
        held = await claim(worker, 2)
        await backend.progress.update_progress(place.queue, held[0].job.id, b"50")
        await backend.logs.log(place.queue, held[0].job.id, "line", 0)
        assert await worker.extend(held) == []
        await worker.settle([Completed(held[0], b"1"), Failed(held[1], "boom")], 0)
        for duty in worker.duties():
            await duty.run()
        await backend.queue_list.figures([place.queue], 10, None)
        await queue.admin.retry(held[1].job.id)
        await queue.admin.retry_all("completed")
        await queue.admin.update_data("2", {"new": 2})
        await queue.admin.change_priority("2", 1)
        await queue.admin.change_delay("3", 30)
        await queue.admin.promote("3")
        await queue.add_many([NewJob(5, delay=60), NewJob(6, delay=90)])
        await queue.admin.promote_all()
        await queue.admin.pause()
        await queue.admin.resume()
        assert (await queue.counts())[State.WAITING] == 6
        assert len(await queue.jobs(State.WAITING)) == 6
        assert await queue.get("2")
        await queue.admin.limit_concurrency(50)
        await queue.admin.limit_rate(Rate(1000, per=60))
        await queue.admin.clear_logs("1")
        await queue.admin.release_unique("k")
        await queue.admin.publish("noted", {"by": "us"})
        await queue.schedule("hourly", every=3600)
        assert len(await queue.schedules()) == 1
        for one in await claim(worker, 10):
            if "rjk" in one.job.raw:
                await worker.settle([Completed(one, b"1")], 0)
            elif one.job.id == "2":
                await queue.connection.backend.add(
                    place.other, [other._prepare(NewJob(7, id="late", parent=Parent("2", place.queue)))]
                )
                await worker.settle([Parked(one)], 0)
            else:
                await worker.settle([Completed(one, b"1")], 0)
        assert await queue.unschedule("hourly")
        [late] = await claim(carrier)
        await carrier.settle([Completed(late, b"7")], 0)
        [resumed] = await claim(worker)
        assert (await queue.children("2")).pending == ()
        await worker.settle([Completed(resumed, b"2")], 0)
        async with Flow(connection) as flow:
            tree = await flow.add(FlowJob(place.queue, "root", id="R", children=[FlowJob(place.other, "leaf", id="L")]))
            assert (await flow.get(place.queue, "R")).children[0].job.id == tree.children[0].job.id
        [leaf] = await claim(carrier)
        await carrier.settle([Completed(leaf, b"1")], 0)
        await queue.add_many([NewJob(8), NewJob(9, priority=1), NewJob(10, delay=60)])


async def clear_everything(connection: Connection, place: Place) -> None:
    async with Queue(place.queue, connection) as queue, Queue(place.other, connection) as other:
        await queue.admin.remove("R")
        await queue.admin.clean(State.COMPLETED)
        await queue.admin.drain(delayed=True)
        await queue.admin.obliterate(force=True)
        await other.admin.obliterate(force=True)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the scripts that were run."""
    names: set[str] = set()
    original = redisio_scripts.load

    def noting(package: str, name: str) -> redisio_scripts.Script:
        names.add(name)
        return original(package, name)

    monkeypatch.setattr(redisio_scripts, "load", noting)
    return names


async def test_every_script_runs_on_a_cluster_and_keeps_to_one_slot(
    place: Place, jobwire_valkey_cluster: Cluster, ran: set[str]
) -> None:
    await flush_scripts(jobwire_valkey_cluster)
    async with connected(jobwire_valkey_cluster, place.prefix) as connection:
        await use_everything(connection, place)
        async with RedisCluster.from_url(jobwire_valkey_cluster.url) as cluster:
            await cluster.set(Keys(place.prefix, place.queue).lock("gone"), "a token")
        [lock] = [one for one in (await examine(connection)).findings if one.code == "locks"]
        assert [one.done for one in await fix(connection, [lock])] == [True]
        stored = await keys_of(jobwire_valkey_cluster, place.prefix)
        await clear_everything(connection, place)

    kept = {path.stem for path in Path(str(files(PACKAGE))).glob("scripts/*/*.lua") if path.parent.name != "lib"}
    assert ran == kept
    [keys] = stored.values()
    assert len(keys) > 15
    async with RedisCluster.from_url(jobwire_valkey_cluster.url) as cluster:
        assert len({cluster.keyslot(key) for key in keys}) == 1
    assert await keys_of(jobwire_valkey_cluster, place.prefix) == {}


async def test_a_queue_without_a_tag_is_refused_before_anything_is_written(
    jobwire_valkey_cluster: Cluster, unique: str
) -> None:
    async with connected(jobwire_valkey_cluster, unique) as connection:
        queue = Queue("letters", connection)
        with pytest.raises(InvalidOption, match=r"braces on a cluster.*\{bull\}.*'letters'"):
            await queue.open()
        with pytest.raises(InvalidOption, match="braces"):
            await queue.add(1)
        with pytest.raises(InvalidOption, match="braces"):
            await Worker("letters", print, connection).run(signals=False)
        async with Flow(connection) as flow:
            with pytest.raises(InvalidOption, match="braces"):
                await flow.add(FlowJob("{a}", 1, children=[FlowJob("{b}", 2)]))
        await queue.close()
    assert await keys_of(jobwire_valkey_cluster, unique) == {}


def _on_one_node(cluster: RedisCluster, prefix: str) -> bool:
    """Returns whether the first key that a script uses is where its queue is, or two keys of one command are."""
    base, first, other = (f"{prefix}:letters:{part}" for part in ("", "id", "wait"))
    return cluster.get_node_from_key(base).name == cluster.get_node_from_key(first).name or (
        cluster.keyslot(first) == cluster.keyslot(other)
    )


async def test_keys_without_a_tag_really_are_refused_by_a_cluster(jobwire_valkey_cluster: Cluster, unique: str) -> None:
    """Why the refusal above is needed: by command, by our own scripts, and by Node alike."""
    text = redisio_scripts.load(PACKAGE, "add").text
    async with RedisCluster.from_url(jobwire_valkey_cluster.url) as cluster:
        while _on_one_node(cluster, unique):  # as happens once in a while
            unique += "x"
        node_of_queue = cluster.get_node_from_key(f"{unique}:letters:")
        with pytest.raises(ResponseError, match=r"CROSSSLOT|same slot"):
            await node_of_queue.execute_command("DEL", f"{unique}:letters:wait", f"{unique}:letters:id")
        with pytest.raises(ResponseError, match=r"non local key"):
            await node_of_queue.execute_command("EVAL", text, 1, f"{unique}:letters:", 1, 0, 0, "n", "{}", "n", "{}")
    script = f"""
    const {{ Cluster }} = require("ioredis");
    const cluster = new Cluster({json.dumps(jobwire_valkey_cluster.urls)});
    const add = (prefix, name) => new Queue(name, {{ connection: cluster, prefix, skipMetasUpdate: true }}).add("n", 1);
    await add({json.dumps(unique)}, "letters").then(() => say("added"), (error) => say(error.message));
    say((await add({json.dumps(f"{{{unique}}}")}, "letters")).id);
    """
    refused, added = await node(jobwire_valkey_cluster.url, [], script)
    assert "CROSSSLOT" in refused
    assert added == "1"


async def test_a_worker_runs_what_we_and_node_add_to_a_cluster(place: Place, jobwire_valkey_cluster: Cluster) -> None:
    async def handle(job: ActiveJob) -> int:
        return job.data * 2

    script = f"""
    const {{ Cluster }} = require("ioredis");
    const connection_ = new Cluster({json.dumps(jobwire_valkey_cluster.urls)});
    const q = new Queue({json.dumps(place.queue)}, {{ connection: connection_, prefix: {json.dumps(place.prefix)} }});
    await q.addBulk(Array.from({{ length: 50 }}, (_, n) => ({{ name: "theirs", data: n }})));
    """
    async with connected(jobwire_valkey_cluster, place.prefix) as connection, Queue(place.queue, connection) as queue:
        worker = Worker(place.queue, handle, connection, concurrency=10)
        running = asyncio.create_task(worker.run(signals=False))
        try:
            await node(jobwire_valkey_cluster.url, [], script)
            ours = await queue.add_many([NewJob(n) for n in range(50)])
            assert [await job.wait(timeout=20) for job in ours] == [n * 2 for n in range(50)]
            await eventually(lambda: _all_completed(queue, 100))
        finally:
            await worker.stop()
            await running


async def _all_completed(queue: Queue, number: int) -> bool:
    return (await queue.counts())[State.COMPLETED] == number


async def test_flushed_scripts_are_given_to_every_node_again(jobwire_valkey_cluster: Cluster, unique: str) -> None:
    """Queues on all three nodes, a worker each, and scripts that vanish under them again and again."""
    done: list[int] = []

    async def handle(job: ActiveJob) -> None:
        done.append(job.data)

    queues = _one_queue_per_node(jobwire_valkey_cluster, unique)
    async with connected(jobwire_valkey_cluster, unique) as connection:
        workers = [Worker(name, handle, connection, concurrency=5) for name in queues]
        running = [asyncio.create_task(worker.run(signals=False)) for worker in workers]
        opened = [await Queue(name, connection).open() for name in queues]
        try:
            for turn in range(5):
                await flush_scripts(jobwire_valkey_cluster)
                for queue in opened:
                    await queue.add_many([NewJob(turn) for _ in range(20)])
                await eventually(lambda wanted=(turn + 1) * 60: len(done) == wanted)
        finally:
            for worker in workers:
                await worker.stop()
            await asyncio.gather(*running)
            for queue in opened:
                await queue.close()


def _one_queue_per_node(cluster: Cluster, unique: str) -> list[str]:
    from redis.crc import key_slot

    share = 16384 // len(cluster.urls) + 1
    found: dict[int, str] = {}
    number = 0
    while len(found) < len(cluster.urls):
        name = f"{{{unique}-{number}}}"
        found.setdefault(key_slot(f"{unique}-{number}".encode()) // share, name)
        number += 1
    return list(found.values())
