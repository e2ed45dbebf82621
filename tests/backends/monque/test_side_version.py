"""The version of the side data: a document in the collection beside Monque's."""

from __future__ import annotations

import asyncio

import pytest
from pymongo import MongoClient

from jobwire import NewerSideData, Queue, StoreRefused, Worker, connect
from jobwire.backends.monque.connection import side_version

STAMP = {"_id": "jobwire:version", "version": 1}


@pytest.fixture
def side(jobs):
    return jobs.database["monque_jobs_jobwire"]


async def _opened(url, count=1):
    connections = await asyncio.gather(*(connect(url).open() for _ in range(count)))
    for one in connections:
        await one.close()


@pytest.mark.parametrize("more", ["", "&create_indexes=false"])
async def test_new_side_data_is_of_version_1(url, side, more):
    await _opened(url + more)
    assert list(side.find()) == [STAMP]


async def test_a_newer_version_is_refused_when_it_is_opened_and_nothing_is_written(url, side):
    side.insert_one({"_id": "jobwire:version", "version": 7})
    words = "collection monque_jobs_jobwire of .* version 7; .* up to 1: upgrade jobwire here"
    with pytest.raises(NewerSideData, match=words):
        await connect(url, wait_for_store=60).open()
    with pytest.raises(NewerSideData):
        await Worker("emails", print, url, wait_for_store=60).run(signals=False)
    assert list(side.find()) == [{"_id": "jobwire:version", "version": 7}]
    assert side.database.list_collection_names() == [side.name], "no collection of jobs was made"
    assert list(side.index_information()) == ["_id_"]


async def test_side_data_without_a_version_is_adopted(url, side):
    async with Queue("emails", url) as queue:
        await queue.admin.pause()
    side.delete_one({"_id": "jobwire:version"})
    async with Queue("emails", url) as queue:
        assert await queue.admin.paused()
    assert side.find_one({"_id": "jobwire:version"}) == STAMP


async def test_a_stamp_that_a_shell_wrote_is_read_and_one_that_is_no_version_is_refused(url, side):
    side.insert_one({"_id": "jobwire:version", "version": 1.0})
    await _opened(url)
    side.update_one({}, {"$unset": {"version": ""}})
    with pytest.raises(StoreRefused, match="not a version"):
        await connect(url).open()


async def test_the_version_outlives_everything_that_deletes_side_data(queue, side, work):
    await queue.admin.pause()
    await queue.admin.obliterate(force=True)
    assert list(side.find()) == [STAMP]


async def test_a_role_that_may_not_use_side_data_works_without(url, jobs, side, unique, jobwire_mongo):
    await _opened(url)
    only_jobs = {"db": unique, "collection": "monque_jobs"}
    with MongoClient(jobwire_mongo.url) as client:
        client[unique].command(
            "createRole",
            "poor",
            roles=[],
            privileges=[{"resource": only_jobs, "actions": ["find", "insert", "update"]}],
        )
        client[unique].command("createUser", "poor", pwd="poor", roles=["poor"])
        place = url.partition("@")[2]
        poor_url = f"monque+mongodb://poor:poor@{place}&authSource={unique}&create_indexes=false"
        try:
            async with Queue("emails", poor_url.replace("authSource=admin&", "")) as queue:
                assert (await queue.add(1)).id
        finally:
            client[unique].command("dropUser", "poor")
            client[unique].command("dropRole", "poor")


async def test_a_second_connection_of_one_that_is_open_does_not_check(connection, side):
    """It renews the leases of jobs that run; a refusal would lose them."""
    side.update_one({"_id": "jobwire:version"}, {"$set": {"version": 7}})
    twin = connection.backend.twin()
    await twin.open()
    await twin.close()


async def test_openers_at_once_stamp_once(url, side):
    await _opened(url, 5)
    assert list(side.find()) == [STAMP]


async def test_openers_at_once_take_a_step_and_raise_the_number_once(url, side, monkeypatch):
    await _opened(url)
    both = asyncio.Barrier(2)

    async def step(store):
        await both.wait()  # both have read version 1
        await store.side.update_one({"_id": "more"}, {"$set": {"made": True}}, upsert=True)

    monkeypatch.setattr(side_version, "STEPS", [step])
    async with asyncio.timeout(30):
        await _opened(url, 2)
    assert sorted(side.find(), key=str) == [{"_id": "jobwire:version", "version": 2}, {"_id": "more", "made": True}]
    monkeypatch.undo()
    with pytest.raises(NewerSideData, match="version 2"):
        await connect(url).open()


async def test_a_step_that_fails_is_taken_again_by_the_next_opening(url, side, monkeypatch):
    taken = []

    async def step(store):
        taken.append(1)
        if len(taken) == 1:
            raise StoreRefused("not today")

    monkeypatch.setattr(side_version, "STEPS", [step])
    with pytest.raises(StoreRefused, match="not today"):
        await connect(url).open()
    assert list(side.find()) == [STAMP]
    await _opened(url)
    assert (len(taken), side.find_one()["version"]) == (2, 2)


async def test_a_step_beside_a_newer_release_ends_in_a_refusal(url, side, monkeypatch):
    await _opened(url)

    async def step(store):
        await store.side.update_one({"_id": "jobwire:version"}, {"$set": {"version": 7}})

    monkeypatch.setattr(side_version, "STEPS", [step])
    with pytest.raises(NewerSideData, match="version 7; this jobwire supports up to 2"):
        await connect(url).open()
