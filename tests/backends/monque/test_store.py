"""Reaching the server: what the claim costs it, where jobwire looks for it, and what is said when it is not there."""

from __future__ import annotations

import re
import socket

import pytest
from pymongo import MongoClient

from awaiting import eventually
from jobwire import Queue, Worker, connect
from jobwire.backends.monque.connection.indexes import CLAIM_INDEX
from jobwire.backends.monque.work import claim
from jobwire.boundary import Completed
from jobwire.errors import InvalidOption, StoreRefused, StoreUnavailable
from jobwire.model import State
from jobwire.options import NewJob


async def test_a_claim_reads_the_index_from_its_head_and_no_more_jobs_than_it_takes(queue, jobs, peer):
    jobs.insert_many([peer.fresh(name, n) for n in range(300) for name in ("emails", "letters")])
    due = {"name": "emails", "status": "pending", "nextRunAt": {"$lte": peer.fresh("emails", 0)["nextRunAt"]}}
    plan = jobs.find(due, sort=[("nextRunAt", 1)], limit=10, hint=CLAIM_INDEX).explain()
    stats = plan["executionStats"]
    assert (stats["totalDocsExamined"], stats["totalKeysExamined"] <= 11) == (10, True)
    assert "SORT" not in str(plan["queryPlanner"]["winningPlan"])


async def test_a_batch_is_settled_and_the_next_one_claimed_in_one_command(queue, consume, jobs, monkeypatch):
    monkeypatch.setattr(claim, "_FRESH", 60.0)  # a busy machine may take longer than the shortlist is trusted
    await queue.add_many([NewJob(n) for n in range(60)])
    consumer = consume()
    claims = (await consumer.settle([], claim=10)).claims
    jobs.database.command("profile", 2)
    settled = await consumer.settle([Completed(claim, b"null") for claim in claims], claim=10)
    jobs.database.command("profile", 0)
    assert [verdict.value for verdict in settled.verdicts] == ["completed"] * 10
    assert [claim.job.data for claim in settled.claims] == list(range(10, 20))
    done = list(jobs.database["system.profile"].find({"appName": "jobwire"}, sort=[("ts", 1)]))
    assert [(one["op"], one["ns"].partition(".")[2], one["nMatched"]) for one in done] == [
        ("update", "monque_jobs", 10),
        ("update", "monque_jobs", 10),
    ], "one command with two statements"


async def test_one_read_brings_more_jobs_than_the_servers_default_batch_of_101(queue, consume, jobs):
    await queue.add_many([NewJob(n) for n in range(300)])
    consumer = consume()
    jobs.database.command("profile", 2)
    settled = await consumer.settle([], claim=250)
    jobs.database.command("profile", 0)
    assert [claim.job.data for claim in settled.claims] == list(range(250))
    reads = jobs.database["system.profile"].find({"op": "query", "ns": f"{jobs.database.name}.{jobs.name}"})
    assert [one["nreturned"] for one in reads if one["command"].get("sort")] == [250]


@pytest.mark.slow
async def test_an_embedded_server_is_started_joined_and_kept_by_its_folder(tmp_path):
    url = f"monque+embedded:{tmp_path}?collection=mine&max_retries=2"

    async def handler(job):
        return job.data + 1

    async with Queue("emails", url) as queue, Worker("emails", handler, url, lease=0.4) as worker:
        added = await queue.add(1)
        assert await added.wait(timeout=30) == 2
        assert (await queue.get(added.id)).attempts == 2
        await eventually(lambda: worker.busy == 0)
    async with Queue("emails", url) as queue:
        assert (await queue.get(added.id)).state is State.COMPLETED


async def test_a_server_that_does_not_answer_is_unavailable_and_no_password_is_told():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StoreUnavailable) as refusal:
            async with Queue("emails", f"monque+mongodb://app:hunter2@{where}/db?serverSelectionTimeoutMS=200"):
                pass
    assert "hunter2" not in str(refusal.value)
    assert where in str(refusal.value)


async def test_a_wrong_password_is_refused_and_not_told(jobwire_mongo):
    url = "monque+" + re.sub("//.*@", "//app:hunter2@", jobwire_mongo.url)
    with pytest.raises(StoreRefused) as refusal:
        async with Queue("emails", url):
            pass
    assert "hunter2" not in str(refusal.value)


async def test_an_option_that_the_driver_does_not_take_is_refused_as_the_urls():
    with pytest.raises(InvalidOption, match="url"):
        async with connect("monque+mongodb://127.0.0.1:1,127.0.0.1:2/db?directConnection=true"):
            pass


async def test_writes_wait_for_the_majority_unless_the_url_says_otherwise(url):
    for more, concern in (("", {"w": "majority", "wtimeout": 10_000}), ("&w=1&wTimeoutMS=5", {"w": 1, "wtimeout": 5})):
        async with connect(url + more) as connection:
            assert connection.backend.store.jobs.write_concern.document == concern


async def test_a_collection_and_a_database_of_ones_own_are_used(jobwire_mongo, unique):
    base = jobwire_mongo.url.replace("/?", f"/{unique}?")
    async with Queue("emails", f"monque+{base}&collection=other_jobs") as queue:
        await queue.add(1)
    with MongoClient(jobwire_mongo.url) as client:
        assert client[unique]["other_jobs"].count_documents({}) == 1
        client.drop_database(unique)
