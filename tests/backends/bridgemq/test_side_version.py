"""The version of the side data: a key of the namespace."""

from __future__ import annotations

import asyncio

import pytest

from jobwire import NewerSideData, Queue, StoreRefused, Worker, connect
from jobwire.backends.bridgemq.connection import side_version


@pytest.fixture
def key(namespace):
    return f"{namespace}:x:version"


@pytest.fixture
async def contents(redis, namespace):
    async def read():
        return sorted([key async for key in redis.scan_iter(match=f"{namespace}:*", count=100_000)])

    return read


async def _opened(url, count=1):
    connections = await asyncio.gather(*(connect(url).open() for _ in range(count)))
    for one in connections:
        await one.close()


async def test_new_side_data_is_of_version_1(url, redis, key, contents):
    await _opened(url)
    assert (await redis.get(key), await contents()) == ("1", [key])


async def test_a_newer_version_is_refused_when_it_is_opened_and_nothing_is_written(
    url, redis, key, contents, namespace
):
    await redis.set(key, 7)
    with pytest.raises(NewerSideData, match=f"namespace {namespace} of .* version 7; .* up to 1: upgrade jobwire here"):
        await connect(url, wait_for_store=60).open()
    with pytest.raises(NewerSideData):
        await Worker("mail", print, url, wait_for_store=60).run(signals=False)
    assert (await redis.get(key), await contents()) == ("7", [key])


@pytest.mark.parametrize("found", ["newest", "0", ""])
async def test_what_is_not_a_version_is_refused(url, redis, key, found):
    await redis.set(key, found)
    with pytest.raises(StoreRefused, match="not a version"):
        await connect(url).open()


async def test_side_data_without_a_version_is_adopted(url, redis, key):
    async with Queue("mail", url) as queue:
        added = await queue.add(1)
    await redis.delete(key)
    async with Queue("mail", url) as queue:
        assert (await queue.get(added.id)).data == 1
    assert await redis.get(key) == "1"


async def test_the_version_outlives_its_queues(queue, redis, key):
    await queue.add(1)
    await queue.admin.obliterate(force=True)
    assert await redis.get(key) == "1"


@pytest.mark.parametrize("missing", ["-set", "-get -set", "resetkeys ~{namespace}:jobs:*"])
async def test_an_account_that_may_not_write_the_version_works_without(
    redis, jobwire_valkey, namespace, missing, contents
):
    user = namespace.replace("-", "")
    rights = ["~*", "&*", "+@all", *missing.format(namespace=namespace).split()]
    await redis.execute_command("ACL", "SETUSER", user, "on", ">pw", *rights)
    try:
        place = jobwire_valkey.url.rpartition("@")[2]
        await _opened(f"bridgemq+redis://{user}:pw@{place}?namespace={namespace}")
        assert await contents() == []
    finally:
        await redis.execute_command("ACL", "DELUSER", user)


async def test_a_full_server_is_opened_without_a_version_and_given_one_later(tmp_path):
    async with connect(f"bridgemq+embedded:{tmp_path}?namespace=full") as first:
        call = first.backend._namespace.store.call
        await call("CONFIG", "SET", "maxmemory", 1, "maxmemory-policy", "noeviction")
        await call("DEL", "full:x:version")
        await _opened(f"bridgemq+embedded:{tmp_path}?namespace=full")
        assert await call("EXISTS", "full:x:version") == 0
        await call("CONFIG", "SET", "maxmemory", 0)
        await _opened(f"bridgemq+embedded:{tmp_path}?namespace=full")
        assert await call("GET", "full:x:version") == b"1"


async def test_a_second_connection_of_one_that_is_open_does_not_check(connection, redis, key):
    """It renews the leases of jobs that run; a refusal would lose them."""
    await redis.set(key, 7)
    twin = connection.backend.twin()
    await twin.open()
    await twin.close()


async def test_openers_at_once_take_a_step_and_raise_the_number_once(url, redis, key, namespace, monkeypatch):
    await _opened(url, 5)
    assert await redis.get(key) == "1"
    both = asyncio.Barrier(2)

    async def step(place):
        await both.wait()  # both have read version 1
        await place.store.call("SADD", f"{namespace}:x:more", "made")

    monkeypatch.setattr(side_version, "STEPS", [step])
    async with asyncio.timeout(30):
        await _opened(url, 2)
    assert (await redis.get(key), await redis.smembers(f"{namespace}:x:more")) == ("2", {"made"})
    monkeypatch.undo()
    with pytest.raises(NewerSideData, match="version 2"):
        await connect(url).open()


async def test_a_step_beside_a_newer_release_ends_in_a_refusal(url, redis, key, monkeypatch):
    async def step(place):
        await redis.set(key, 7)

    monkeypatch.setattr(side_version, "STEPS", [step])
    with pytest.raises(NewerSideData, match="version 7; this jobwire supports up to 2"):
        await connect(url).open()
    assert await redis.get(key) == "7"


async def test_a_step_that_fails_is_taken_again_by_the_next_opening(url, redis, key, monkeypatch):
    taken = []

    async def step(place):
        taken.append(1)
        if len(taken) == 1:
            raise StoreRefused("not today")

    monkeypatch.setattr(side_version, "STEPS", [step])
    with pytest.raises(StoreRefused, match="not today"):
        await connect(url).open()
    assert await redis.get(key) == "1"
    await _opened(url)
    assert (len(taken), await redis.get(key)) == (2, "2")
