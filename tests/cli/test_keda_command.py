"""`jobwire keda`: the numbers that KEDA would read with its triggers, read from real stores, against `counts()`."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import bson.json_util
import psycopg
import pymongo
import pytest
import redis
import yaml

from jobwire import Queue, State, Unrecoverable, Worker
from jobwire.boundary import Feature

Call = Callable[..., Any]


def keda(call: Call, url: str, *arguments: str) -> dict[str, dict[str, Any]]:
    """The documents that are printed, by their kind."""
    said = call("keda", "emails", "--url", url, *arguments)
    assert said.code == 0, said.err
    return {document["kind"]: document for document in yaml.safe_load_all(said.out)}


def jobs_seen(scaled: dict[str, Any], url: str) -> int:
    """What the triggers and their formula come to. Each scaler is asked as KEDA's source does it."""
    seen = {
        trigger["name"]: READERS[trigger["type"]](trigger["metadata"], url) for trigger in scaled["spec"]["triggers"]
    }
    formula = scaled["spec"].get("advanced", {}).get("scalingModifiers", {}).get("formula")
    if formula is None:
        [only] = seen.values()
        return only
    python = re.sub(r"\((\w+) > 0 \? 1 : 0\)", r"(1 if \1 > 0 else 0)", formula)
    return eval(python, {}, seen)


def _members(metadata: dict[str, str], url: str) -> int:
    count = {b"zset": "ZCARD", b"set": "SCARD", b"list": "LLEN", b"hash": "HLEN", b"none": "LLEN"}
    with redis.Redis.from_url(url.partition("+")[2].partition("?")[0]) as client:
        assert metadata["address"] == "{host}:{port}".format(**client.connection_pool.connection_kwargs)
        kind: Any = client.type(metadata["listName"])
        found: Any = client.execute_command(count[kind], metadata["listName"])
        return found


def _answer(metadata: dict[str, str], url: str) -> int:
    with psycopg.connect(url.partition("+")[2].partition("?")[0]) as connection:
        assert metadata["host"] == connection.info.host
        row = connection.execute(metadata["query"].encode()).fetchone()
        assert row is not None
        return row[0]


def _documents(metadata: dict[str, str], url: str) -> int:
    with pymongo.MongoClient(url.partition("+")[2].partition("&max_retries")[0]) as client:
        collection = client[metadata["dbName"]][metadata["collection"]]
        return collection.count_documents(bson.json_util.loads(metadata["query"]))


READERS: dict[str, Callable[[dict[str, str], str], int]] = {
    "redis": _members,
    "postgresql": _answer,
    "mongodb": _documents,
}


async def _jobs_in_every_state(url: str, look: Callable[[], None]) -> dict[State, int]:
    """Makes waiting, delayed, active and finished jobs, calls `look` while they are, and returns the counts."""
    free, busy = asyncio.Event(), asyncio.Event()

    async def handle(job: Any) -> None:
        if job.data == "long":
            busy.set()
            await free.wait()
        if job.data == "hopeless":
            raise Unrecoverable("no address")

    async with Queue("emails", url) as queue:
        await queue.add("short")
        await queue.add("hopeless")
        await Worker("emails", handle, url).run_until_idle(20)
        await queue.add("long")
        async with Worker("emails", handle, url):
            await busy.wait()
            await queue.add("waiting")
            await queue.add("waiting", priority=7 if queue.capabilities.has(Feature.PRIORITIES) else None)
            await queue.add("later", delay=3600)
            counts = dict(await queue.counts())
            await asyncio.to_thread(look)
            free.set()
    return counts


@pytest.mark.slow
def test_the_autoscaler_counts_the_jobs_that_wait_or_run(call: Call, every_url: str) -> None:
    seen: list[int] = []
    scaled = keda(call, every_url)["ScaledObject"]
    counts = asyncio.run(_jobs_in_every_state(every_url, lambda: seen.append(jobs_seen(scaled, every_url))))
    assert (counts[State.WAITING], counts[State.ACTIVE], counts[State.DELAYED]) == (2, 1, 1)
    assert seen == [3]


@pytest.mark.slow
def test_a_job_that_becomes_due_while_there_is_no_worker_starts_one(
    *, call: Call, every_url: str, on_every: Call, eventually: Call
) -> None:
    scaled = keda(call, every_url, "--min", "0")["ScaledObject"]
    assert on_every(every_url, lambda queue: queue.counts())[State.WAITING] == 0
    assert jobs_seen(scaled, every_url) == 0
    on_every(every_url, lambda queue: queue.add("soon", delay=0.2))
    eventually(lambda: jobs_seen(scaled, every_url) == 1)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["bullmq", "pgboss", "bridgemq"])
def test_a_schedule_keeps_one_worker_where_only_workers_add_its_jobs(
    call: Call, request: pytest.FixtureRequest, on_every: Call, protocol: str
) -> None:
    url: str = request.getfixturevalue(f"jobwire_{protocol}_url")
    scaled = keda(call, url, "--min", "0")["ScaledObject"]
    on_every(url, lambda queue: queue.schedule("nightly", cron="0 3 * * *"))
    assert jobs_seen(scaled, url) == 1


def test_the_documents_state_which_jobs_of_a_paused_queue_count(
    *, call: Call, every_url: str, on_every: Call, eventually: Call
) -> None:
    async def add_two(queue: Queue) -> None:
        await queue.add("plain")
        await queue.add("urgent", priority=7 if queue.capabilities.has(Feature.PRIORITIES) else None)

    on_every(every_url, add_two)
    scaled = keda(call, every_url)["ScaledObject"]
    eventually(lambda: jobs_seen(scaled, every_url) == 2)
    on_every(every_url, lambda queue: queue.admin.pause())
    stated = re.search(
        r"# Of the jobs that wait in a paused queue, (.*) are counted", call("keda", "emails", "--url", every_url).out
    )
    expected = {"all": 2, "those with a priority": 1, None: 0}[stated and stated[1]]
    assert jobs_seen(scaled, every_url) == expected
    on_every(every_url, lambda queue: queue.admin.resume())
    assert jobs_seen(scaled, every_url) == 2


@pytest.mark.slow
def test_the_query_serves_old_schemas_without_blocked_jobs_too(
    call: Call, jobwire_pgboss_url: str, on_every: Call
) -> None:
    on_every(jobwire_pgboss_url, lambda queue: queue.add(1))
    scaled = keda(call, jobwire_pgboss_url)["ScaledObject"]
    schema = re.search(r"schema=(\w+)", jobwire_pgboss_url)
    assert schema is not None
    with psycopg.connect(jobwire_pgboss_url.partition("+")[2].partition("?")[0]) as connection:
        connection.execute(f"ALTER TABLE {schema[1]}.job DROP COLUMN blocked CASCADE".encode())
    assert jobs_seen(scaled, jobwire_pgboss_url) == 1


def test_the_numbers_and_names_are_in_the_documents(call: Call, jobwire_url: str) -> None:
    options = ("--name", "mail-worker", "--secret", "redis", "--min", "2", "--max", "30", "--per-worker", "25")
    made = keda(call, jobwire_url, *options)
    scaled, authentication = made["ScaledObject"], made["TriggerAuthentication"]
    assert scaled["spec"]["scaleTargetRef"] == {"name": "mail-worker"}
    assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == (2, 30)
    modifiers = scaled["spec"]["advanced"]["scalingModifiers"]
    assert (modifiers["formula"], modifiers["target"]) == ("wait + prioritized + active", "25")
    assert {trigger["authenticationRef"]["name"] for trigger in scaled["spec"]["triggers"]} == {"mail-worker"}
    assert authentication["metadata"] == {"name": "mail-worker"}
    assert authentication["spec"]["secretTargetRef"] == [{"parameter": "password", "name": "redis", "key": "password"}]


@pytest.mark.parametrize(
    "url",
    [
        "bullmq+redis://app:hunter2@cache:6379/2",
        "bridgemq+rediss://:hunter2@cache",
        "bullmq+cluster://app:hunter2@a:7000,b:7001/?prefix={bull}",
        "bullmq+sentinel://app:hunter2@a:26379/main/0?sentinel_password=hunter2",
        "pgboss+postgresql://app:hunter2@db/shop",
        "monque+mongodb://app:hunter2@mongo/shop",
    ],
)
def test_no_password_is_printed(call: Call, url: str) -> None:
    said = call("keda", "emails", "--url", url)
    assert said.code == 0, said.err
    assert "hunter2" not in said.out
    secrets = [one for one in yaml.safe_load_all(said.out) if one["kind"] == "TriggerAuthentication"]
    assert secrets, said.out


def test_clusters_and_sentinels_have_scalers_of_their_own(call: Call) -> None:
    cluster = keda(call, "bullmq+cluster://a:7000,b:7001/?prefix={bull}&tls=true")["ScaledObject"]["spec"]["triggers"][
        0
    ]
    assert cluster["type"] == "redis-cluster"
    assert cluster["metadata"] == {
        "addresses": "a:7000,b:7001", "enableTLS": "true", "listName": "{bull}:emails:wait", "listLength": "10",
    }  # fmt: skip
    url = "bullmq+sentinel://a:26379,b/main/3?sentinel_username=s&sentinel_password=t"
    made = keda(call, url)
    sentinel = made["ScaledObject"]["spec"]["triggers"][0]
    assert sentinel["type"] == "redis-sentinel"
    assert sentinel["metadata"]["addresses"] == "a:26379,b:26379"
    assert (sentinel["metadata"]["sentinelMaster"], sentinel["metadata"]["databaseIndex"]) == ("main", "3")
    keys = [one["key"] for one in made["TriggerAuthentication"]["spec"]["secretTargetRef"]]
    assert keys == ["sentinelUsername", "sentinelPassword"]


def test_names_are_quoted_in_queries(call: Call) -> None:
    queue = 'it\'s\n"new"'
    said = call("keda", queue, "--url", "pgboss+postgresql://app@db/shop?schema=jobs")
    [_, scaled] = yaml.safe_load_all(said.out)
    assert "name = 'it''s\n\"new\"'" in scaled["spec"]["triggers"][0]["metadata"]["query"]
    said = call("keda", "it's", "--url", "monque+mongodb://db/shop")
    [_, scaled] = yaml.safe_load_all(said.out)
    assert json.loads(scaled["spec"]["triggers"][0]["metadata"]["query"])["name"] == "it's"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--url", "memory:"), "its jobs are in this process"),
        (("--url", "bullmq+embedded:"), "reaches over the network"),
        (("--url", "pgboss+postgresql:///shop"), "reaches over the network"),
        (("--url", "pgboss+postgresql://db/shop"), "must name the user"),
        (("--url", "bullmq+redis://db", "--name", "Mail Worker"), "name: must be a name in Kubernetes"),
        (("--url", "bullmq+redis://db", "--min", "5", "--max", "3"), "max: must be 5 or more"),
        (("--url", "bullmq+redis://db", "--max", "0"), "max: must be 1 or more"),
        (("--url", "bullmq+redis://db", "--min", "-1"), "min: must be 0 or more"),
        (("--url", "bullmq+redis://db", "--per-worker", "0"), "per_worker: must be 1 or more"),
    ],
)
def test_what_can_not_be_scaled_is_refused(call: Call, arguments: tuple[str, ...], sentence: str) -> None:
    said = call("keda", "emails", *arguments)
    assert (said.code, said.out) == (1, "")
    assert sentence in said.err


def test_a_queue_name_that_the_protocol_refuses_is_refused(call: Call) -> None:
    said = call("keda", "a:b", "--url", "bullmq+redis://db")
    assert said.code == 1
    assert "queue: must not contain ':'" in said.err
