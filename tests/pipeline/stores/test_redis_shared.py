"""What both Redis protocols build on: walking through sorted sets that change, and every way to reach a server."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from awaiting import eventually
from backends.bullmq.redis_62 import KINDS, redis_62
from jobwire.embedded import Server, binaries
from jobwire.errors import StoreRefused, StoreUnavailable
from jobwire.options import NewJob
from jobwire.pipeline.stores.boundary import open_store
from jobwire.pipeline.stores.redisio.connection import RedisConnection
from jobwire.pipeline.stores.redisio.partitions import BEGINNING, END, Bound, Cut, boundaries, cut, members
from jobwire.urls import parse

from .redis_rig import Rig, batch_of, rig_at, stamps

SIZE = 3_000


@pytest.fixture
def connection(jobwire_valkey: Server, unique: str) -> Iterator[RedisConnection]:
    connection = RedisConnection(parse(f"bullmq+{jobwire_valkey.url}"), unique)
    yield connection
    connection.close()


@pytest.fixture(params=["one score for all", "some of each score", "a score for each"])
def scores(request: pytest.FixtureRequest, redis_client: redis.Redis, unique: str) -> list[str]:
    """A sorted set under the test's own key; its members in order."""
    alike = {"one score for all": SIZE, "some of each score": 70, "a score for each": 1}[request.param]
    redis_client.zadd(unique, {f"id-{n:04}": 1_700_000_000_000.25 + n // alike for n in range(SIZE)})
    return redis_client.zrange(unique, 0, -1)


def ids(pages: Iterator[list[Bound]]) -> list[str]:
    return [one.id.decode() for page in pages for one in page]


def test_slices_of_a_sorted_set_are_equal_whatever_its_scores(
    connection: RedisConnection, unique: str, scores: list[str]
) -> None:
    cuts = [one for part in cut([(unique, SIZE)], 4) for one in part]
    found = boundaries(connection, [(unique, BEGINNING, END, one) for one in cuts], {unique: SIZE})
    slices = [ids(members(connection, unique, low, high, 100)) for _, low, high in found]
    assert [len(one) for one in slices] == [SIZE // 4] * 4
    assert [each for one in slices for each in one] == scores


def test_what_stays_in_a_sorted_set_is_read_once_while_others_leave(
    connection: RedisConnection, redis_client: redis.Redis, unique: str, scores: list[str]
) -> None:
    removed: set[str] = set()
    read: list[str] = []
    for page in members(connection, unique, BEGINNING, END, 100):
        some = [one.id.decode() for one in page]
        read += some
        # The one that the next page would go on from, and some before and behind it.
        at = scores.index(some[-1])
        leaving = [some[-1], *scores[at // 2 : at // 2 + 5], *scores[at + 50 : at + 53]]
        redis_client.zrem(unique, *leaving)
        removed |= set(leaving)
    assert len(read) == len(set(read))
    assert set(scores) - removed <= set(read)


def test_a_bound_that_has_left_is_still_a_bound(
    connection: RedisConnection, redis_client: redis.Redis, unique: str, scores: list[str]
) -> None:
    [(_, low, high)] = boundaries(connection, [(unique, BEGINNING, END, Cut(unique, 1_000, 2_000))], {unique: SIZE})
    redis_client.zrem(unique, low.id, high.id)
    assert ids(members(connection, unique, low, high, 100)) == scores[1_001:2_000]


async def whole_life(rig: Rig) -> None:
    await rig.add(*(NewJob(n) for n in range(20)))
    await rig.complete(8)
    rows = rig.finished()
    assert len(rig.rows()) == 20
    assert len(rig.store.purge(stamps(rows)).removed) == 8
    assert rig.store.put_finished(batch_of(rows)) == 8
    assert len(rig.events()) > 20


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["bullmq", "bridgemq"])
async def test_a_server_is_reached_through_its_sentinel(protocol: str, tmp_path: Path) -> None:
    program = str(binaries.VALKEY.find())
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(2)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        server, sentinel = (one.getsockname()[1] for one in held)
    config = tmp_path / "sentinel.conf"
    watch = f"sentinel monitor main 127.0.0.1 {server} 1"
    config.write_text(f"port {sentinel}\nbind 127.0.0.1\ndir {tmp_path}\n{watch}\n")
    commands = [
        [program, "--bind", "127.0.0.1", "--port", str(server), "--dir", str(tmp_path), "--save", ""],
        [program, str(config), "--sentinel"],
    ]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    try:
        for port in (server, sentinel):
            with redis.Redis(port=port) as client:
                await eventually(lambda client=client: answers(client))
        async with rig_at(f"{protocol}+sentinel://127.0.0.1:{sentinel}/main/0") as rig:
            await whole_life(rig)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, bool]]:
    """A server's URL, and whether it counts the events of a stream."""
    if request.param == "Valkey":
        yield request.getfixturevalue("jobwire_valkey").url, True
    else:
        with redis_62(tmp_path) as url:
            yield url, False


async def test_the_oldest_server_is_read_too_though_it_does_not_count_events(
    server: tuple[str, bool], unique: str
) -> None:
    url, counts = server
    async with rig_at(f"bridgemq+{url}?namespace={unique}") as rig:
        await whole_life(rig)
    async with rig_at(f"bullmq+{url}?prefix={unique}") as rig:
        await whole_life(rig)
        start = rig.store.latest_offset(rig.store.first_offset(), 5)
        with redis.Redis.from_url(url) as client:
            ever = len(client.xrange(f"{unique}:letters:events"))
            client.xtrim(f"{unique}:letters:events", maxlen=3, approximate=False)
        gap, *rest = rig.events(start)
        assert (gap["kind"], len(rest)) == ("gap", 3)
        assert json.loads(gap["data"])["lost"] == (ever - 5 - 3 if counts else None)


def test_a_server_that_does_not_answer_is_said_to_be_unavailable_without_its_password() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        store = open_store(parse(f"bullmq+redis://:hunter2@127.0.0.1:{held.getsockname()[1]}"), "letters", "store")
        with pytest.raises(StoreUnavailable, match="is unavailable") as error:
            store.present(["1"])
        store.close()
    assert "hunter2" not in str(error.value)


def test_a_reply_of_refusal_is_an_error_and_the_link_goes_on(
    connection: RedisConnection, redis_client: redis.Redis, unique: str
) -> None:
    redis_client.set(unique, "a text")
    with pytest.raises(StoreRefused, match="WRONGTYPE"):
        connection.call("LLEN", unique)
    refused, length = connection.calls([("LLEN", unique), ("STRLEN", unique)])
    assert isinstance(refused, redis.ResponseError)
    assert length == 6
