"""Taking in what queues tell: once, again, with gaps, with malformed rows, without end, and killed in between."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
import redis

from jobwire import NewJob
from jobwire.errors import InvalidOption
from jobwire.pipeline.history.build import build
from jobwire.pipeline.history.ingest import Source, find_sources, ingest
from jobwire.pipeline.history.ingest_forever import follow
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.pointers import read_table
from jobwire.pipeline.stores.address import store_name
from jobwire.sync import Queue

pytestmark = pytest.mark.xdist_group("spark")
Place = Callable[[str], str]


def add(url: str, count: int, queue: str = "mail") -> None:
    with Queue(queue, url) as opened:
        opened.add_many([NewJob({"n": number}) for number in range(count)])


def stream_of(url: str) -> str:
    """The key of BullMQ's events."""
    return f"{url.partition('prefix=')[2]}:mail:events"


def test_an_ingest_goes_on_where_the_last_one_ended(spark: Any, place: Place, lake: str) -> None:
    url = place("bullmq")
    add(url, 10)
    tables, source = Lake(lake), Source(url, store_name(url))
    first = ingest(spark, tables, [source]).sources[0]
    add(url, 5)
    second = ingest(spark, tables, [source]).sources[0]
    third = ingest(spark, tables, [source]).sources[0]
    assert [one.events for one in (first, second, third)] == [20, 10, 0]
    assert [one.jobs for one in (first, second, third)] == [10, 15, 15]
    assert tables.bronze_events(spark).select("id").distinct().count() == 30
    assert [row["outcome"] for row in tables.runs(spark).collect()] == ["ok"] * 3


def test_what_was_trimmed_before_it_was_read_is_a_gap_with_its_bounds(
    spark: Any, place: Place, lake: str, redis_client: redis.Redis
) -> None:
    url = place("bullmq")
    tables, source = Lake(lake), Source(url, store_name(url))
    add(url, 10)
    ingest(spark, tables, [source])
    last = redis_client.xrevrange(stream_of(url), count=1)[0][0]
    add(url, 20)
    redis_client.xtrim(stream_of(url), maxlen=5, approximate=False)
    first = redis_client.xrange(stream_of(url), count=1)[0][0]
    assert ingest(spark, tables, [source]).good
    build(spark, tables)
    [gap] = read_table(lake, "gold/gaps").to_pylist()
    assert (gap["queue"], gap["after"], gap["before"], gap["lost"]) == ("mail", last, first, 35)


def test_malformed_jobs_are_set_aside_with_their_reason_and_stop_nothing(
    spark: Any, place: Place, lake: str, redis_client: redis.Redis
) -> None:
    url = place("bullmq")
    add(url, 10)
    prefix = url.partition("prefix=")[2]
    redis_client.hset(f"{prefix}:mail:3", "data", "{not json")
    redis_client.hset(f"{prefix}:mail:4", "colour", "green")
    tables = Lake(lake)
    assert ingest(spark, tables, [Source(url, store_name(url))]).good
    build(spark, tables)
    [aside] = read_table(lake, "quarantine").to_pylist()
    assert (aside["queue"], aside["id"]) == ("mail", "3")
    assert "data" in aside["reason"]
    assert read_table(lake, "silver/jobs").num_rows == 10  # the third job is known from its events
    [kept] = [row for row in tables.snapshots(spark).collect() if row["id"] == "4"]
    assert json.loads(kept["raw"])["colour"] == "green"


def test_a_store_that_fails_is_named_and_keeps_no_other_from_being_read(spark: Any, place: Place, lake: str) -> None:
    url, gone = place("bullmq"), "bullmq+redis://app:hunter2@127.0.0.1:1"
    add(url, 3)
    tables = Lake(lake)
    result = ingest(spark, tables, [Source(gone, store_name(gone)), Source(url, store_name(url))])
    bad, good = result.sources
    assert not result.good
    assert "127.0.0.1:1" in (bad.error or "")
    assert "hunter2" not in json.dumps(result.as_dict())
    assert (good.events, good.jobs, good.error) == (6, 3, None)
    [run] = tables.runs(spark).collect()
    assert (run["outcome"], run["rows_in"]) == ("failed", 9)
    assert "127.0.0.1:1" in run["error"]


def test_a_queue_that_no_store_has_is_refused_by_its_name(place: Place) -> None:
    url = place("bullmq")
    add(url, 1)
    with ExitStack() as stack, pytest.raises(InvalidOption, match="'post'"):
        find_sources(stack, [url], ["mail", "post"])


def test_following_takes_in_queues_that_appear_meanwhile(spark: Any, place: Place, lake: str) -> None:
    url = place("bullmq")
    add(url, 5)
    stop, told = threading.Event(), threading.Event()
    tables = Lake(lake)

    def watch(stage: str, done: int, total: int | None) -> None:
        if done >= 10 and not told.is_set():
            told.set()
            add(url, 7, queue="later")
        if done >= 24:
            stop.set()

    result = follow(spark, tables, [Source(url, store_name(url))], stop, every=1, snapshot_every=3600, progress=watch)
    assert result.sources[0].events == 24
    assert set(result.sources[0].offsets) == {"mail", "later"}
    assert tables.bronze_events(spark).groupBy("queue").count().count() == 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_ingest_that_is_killed_again_and_again_takes_in_every_event_once(
    spark: Any, place: Place, lake: str, redis_client: redis.Redis
) -> None:
    url = place("bullmq")
    chance = random.Random(7)
    command = [sys.executable, "-m", "jobwire", "pipeline", "ingest", url, "--lake", lake]
    command += ["--master", "local[2]", "--conf", "spark.driver.memory=1g"]
    for _ in range(3):
        add(url, 1_000)
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        ) as child:
            try:
                assert child.stderr is not None
                for line in child.stderr:
                    if line.startswith(b"ingesting"):
                        break
                select.select([], [], [], chance.uniform(0.5, 4))
            finally:
                os.killpg(child.pid, signal.SIGKILL)
    ended = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    tables = Lake(lake)
    events = tables.bronze_events(spark)
    there = redis_client.xlen(stream_of(url))
    assert there == 6_000
    assert (events.count(), events.select("id").distinct().count()) == (there, there)
    build(spark, tables)
    assert read_table(lake, "silver/jobs").num_rows == 3_000
