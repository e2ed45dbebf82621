"""Taking in what queues tell: once, again, with gaps, with malformed rows, and without end.

test_movers_killed.py kills an ingest.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
import redis

from jobwire import NewJob
from jobwire.embedded import Server
from jobwire.errors import InvalidOption
from jobwire.pipeline.datasource.options import parse_options
from jobwire.pipeline.datasource.readers import EventsStream
from jobwire.pipeline.history.build import build
from jobwire.pipeline.history.ingest import Source, SourceResult, find_sources, ingest
from jobwire.pipeline.history.ingest_forever import follow
from jobwire.pipeline.history.sources import begin_of
from jobwire.pipeline.lake.events import checkpoint_of
from jobwire.pipeline.lake.lake import Lake, folder_of
from jobwire.pipeline.lake.pointers import read_table
from jobwire.pipeline.lake.run_log import read_runs
from jobwire.pipeline.stores.address import store_name
from jobwire.sync import Queue
from pipeline.literal_rows import values

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
Place = Callable[[str], str]


def add(url: str, count: int, queue: str = "mail") -> None:
    with Queue(queue, url) as opened:
        opened.add_many([NewJob({"n": number}) for number in range(count)])


def no_session() -> NoReturn:
    raise AssertionError("there is nothing to do for Spark")


def stream_of(url: str) -> str:
    """The key of BullMQ's events."""
    return f"{url.partition('prefix=')[2]}:mail:events"


@dataclass(frozen=True)
class History:
    """A queue that was ingested four times, and built: before the last time, events were trimmed and jobs damaged."""

    lake: str
    sources: list[SourceResult]
    ids_after_three: int
    gap: tuple[str, str]
    """The last event that was read before the trimmed ones, and the first that was left."""


@pytest.fixture(scope="module")
def history(
    spark: Any, jobwire_valkey: Server, shared_place: Place, tmp_path_factory: pytest.TempPathFactory
) -> History:
    url = shared_place("bullmq")
    tables, source = Lake(str(tmp_path_factory.mktemp("history") / "lake")), Source(url, store_name(url))
    sources: list[SourceResult] = []

    def take_in(session: Any = spark) -> None:
        result = ingest(session, tables, [source])
        assert result.good, result
        sources.extend(result.sources)

    unfinished = Path(tables.root) / checkpoint_of(folder_of(source.name)) / "offsets" / ".0.tmp"
    unfinished.parent.mkdir(parents=True)
    unfinished.touch()
    for count in (10, 5):
        add(url, count)
        take_in()
    take_in(no_session)
    ids = tables.bronze_events(spark).select("id").distinct().count()
    with redis.Redis.from_url(jobwire_valkey.url, decode_responses=True) as client:
        last = client.xrevrange(stream_of(url), count=1)[0][0]
        add(url, 20)
        client.xtrim(stream_of(url), maxlen=5, approximate=False)
        first = client.xrange(stream_of(url), count=1)[0][0]
        prefix = url.partition("prefix=")[2]
        client.hset(f"{prefix}:mail:35", "data", "{not json")
        client.hset(f"{prefix}:mail:34", "colour", "green")
    take_in()
    build(spark, tables)
    return History(tables.root, sources, ids, (last, first))


def test_an_ingest_goes_on_where_the_last_one_ended(history: History) -> None:
    assert [one.events for one in history.sources[:3]] == [20, 10, 0]
    assert [one.jobs for one in history.sources[:3]] == [10, 15, 0]
    assert history.ids_after_three == 30
    assert [row["outcome"] for row in read_runs(history.lake)] == ["ok"] * 5


def test_an_ingest_begins_although_a_killed_one_left_half_a_record_of_its_first_batch(history: History) -> None:
    assert (history.sources[0].error, history.sources[0].events) == (None, 20)


def test_an_ingest_without_news_reads_nothing_and_says_so_in_the_run_log(history: History) -> None:
    before, unchanged = history.sources[1:3]
    assert (unchanged.unchanged, unchanged.offsets) == (True, before.offsets)
    noted = [json.loads(row["notes"]).get("unchanged") for row in read_runs(history.lake)]
    assert noted == [[], [], [unchanged.store], [], None]


def test_what_was_trimmed_before_it_was_read_is_a_gap_with_its_bounds(history: History) -> None:
    [gap] = read_table(history.lake, "gold/gaps").to_pylist()
    assert (gap["queue"], (gap["after"], gap["before"]), gap["lost"]) == ("mail", history.gap, 35)


def test_malformed_jobs_are_set_aside_with_their_reason_and_stop_nothing(spark: Any, history: History) -> None:
    [aside] = read_table(history.lake, "quarantine").to_pylist()
    assert (aside["queue"], aside["id"]) == ("mail", "35")
    assert "data" in aside["reason"]
    assert read_table(history.lake, "silver/jobs").num_rows == 35  # the last job is known from its events
    [kept] = Lake(history.lake).snapshots(spark).where("id = '34'").collect()
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


def test_another_selection_of_queues_goes_on_where_each_of_them_was_read(
    spark: Any, jobwire_valkey: Server, place: Place, lake: str
) -> None:
    url, tables = place("bullmq"), Lake(lake)
    add(url, 5)
    assert ingest(spark, tables, [Source(url, store_name(url), ("mail",))]).good
    add(url, 2, queue="sms")
    with redis.Redis.from_url(jobwire_valkey.url) as client:
        client.xtrim(stream_of(url), maxlen=1, approximate=False)

    both = ingest(spark, tables, [Source(url, store_name(url), ("mail", "sms"))])

    assert [one.events for one in both.sources] == [4]
    assert values(tables.bronze_events(spark).where("kind = 'gap'"), "queue") == []


def test_the_stream_of_a_store_begins_where_those_of_older_releases_ended(lake: str) -> None:
    tables, store = Lake(lake), "bullmq+redis://a"
    for offsets in ({"mail": {"id": "1-0"}}, {"mail": {"id": "5-0", "n": 5}, "sms": {"id": "2-0"}}, None):
        with tables.run("ingest") as run:
            run.offsets.update({store: offsets, "another": {"mail": {"id": "9-0"}}})

    begin = begin_of(tables, store)

    assert begin == {"mail": {"id": "5-0", "n": 5}, "sms": {"id": "2-0"}}
    stream = EventsStream(parse_options({"url": store, "table": "events", "begin": json.dumps(begin)}))
    assert stream.initialOffset() == begin
    Path(lake, "bronze/events", folder_of(store)).mkdir(parents=True)
    assert begin_of(tables, store) == {}


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
