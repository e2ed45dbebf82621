"""Many queues of one store: read in few tasks, and each job and event once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pytest
from pymongo import MongoClient

from jobwire import NewJob, urls
from jobwire.backends.monque.address import collection_address
from jobwire.errors import StoreRefused
from jobwire.pipeline.datasource.planning import Piece, grouped, latest_offsets, plan_events, plan_jobs
from jobwire.pipeline.history.ingest import Source, ingest
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.stores.address import store_name
from jobwire.pipeline.stores.boundary import StoreConnection, Wanted, connect
from jobwire.sync import Connection, Queue

pytestmark = pytest.mark.timeout(600)

SMALL = 60
"""More queues than one thread plans."""
LARGE = 3_000


@pytest.fixture
def connected(url: str) -> Callable[[], Any]:
    """A store with sixty queues of one job, and one queue of three thousand."""
    with Connection(url) as connection:
        for number in range(SMALL):
            Queue(f"small-{number:02}", connection).add({"n": number})
        Queue("large", connection).add_many([NewJob({"n": number}) for number in range(LARGE)])
    return partial(_connected, url)


@contextmanager
def _connected(url: str) -> Generator[StoreConnection]:
    with closing(connect(urls.parse(url), "here")) as connection:
        yield connection


def names() -> list[str]:
    return ["large", *(f"small-{number:02}" for number in range(SMALL))]


def test_small_queues_share_a_task_and_a_large_one_has_several(connected: Callable[[], Any]) -> None:
    groups = plan_jobs(connected, names(), Wanted(), 4)

    with connected() as connection:
        read = [
            [
                (row["queue"], json.loads(row["payload"])["n"])
                for piece in group
                for batch in connection.queue(piece.queues).read_jobs(piece.part, Wanted())
                for row in batch.to_pylist()
            ]
            for group in groups
        ]
    rows = Counter(row for of_group in read for row in of_group)
    assert rows == Counter(
        [*(("large", number) for number in range(LARGE)), *((f"small-{n:02}", n) for n in range(SMALL))]
    )
    sizes = [len(of_group) for of_group in read]
    assert 3 <= len(sizes) <= 6, sizes
    assert max(sizes) < LARGE * 0.6, sizes


def test_events_of_all_queues_are_read_to_the_end_and_a_queue_without_news_is_left_alone(
    connected: Callable[[], Any], url: str
) -> None:
    first = latest_offsets(connected, dict.fromkeys(names()))
    groups = plan_events(connected, {queue: (None, end) for queue, end in first.items()}, 4)
    read = _events(connected, groups)
    with Queue("small-07", url) as queue:
        queue.add({"n": 7})
    second = latest_offsets(connected, first)
    again = plan_events(connected, {queue: (first[queue], end) for queue, end in second.items()}, 4)

    assert len(groups) <= 10
    added = Counter(row["queue"] for row in read if row["kind"] in ("added", "created"))
    assert added == Counter({"large": LARGE, **dict.fromkeys(names()[1:], 1)})
    known = {(row["queue"], row["id"]) for row in read}
    new = {(row["queue"], row["id"]) for row in _events(connected, again)} - known
    assert {queue for queue, _ in new} == {"small-07"}
    assert latest_offsets(connected, first, None, first) == first


def _events(connected: Callable[[], Any], groups: list[list[Piece]]) -> list[dict[str, Any]]:
    with connected() as connection:
        return [
            row
            for group in groups
            for piece in group
            for batch in connection.queue(piece.queues).read_events(piece.part)
            for row in batch.to_pylist()
        ]


def test_one_change_stream_serves_all_queues_of_a_monque_store(place: Callable[[str], str]) -> None:
    url = place("monque")
    with Connection(url) as connection:
        queues = [Queue(f"q{number}", connection) for number in range(5)]
        for queue in queues:
            queue.add({"n": 0})
        start = latest_offsets(partial(_connected, url), dict.fromkeys(f"q{number}" for number in range(5)))
        for queue in queues:
            job = queue.add({"n": 1})
            queue.cancel(job.id)
        where = collection_address(urls.parse(url))
        with MongoClient(where.driver_url) as client:  # inserted and deleted between two reads
            jobs = client[where.database][where.collection]
            gone = jobs.find_one({"name": "q3", "status": "cancelled"})
            assert gone is not None
            jobs.delete_one({"_id": gone["_id"]})
    end = latest_offsets(partial(_connected, url), start)
    groups = plan_events(partial(_connected, url), {queue: (start[queue], end[queue]) for queue in start}, 8)

    [[piece]] = groups
    assert set(piece.queues) == set(start)
    kinds = Counter((row["queue"], row["kind"]) for row in _events(partial(_connected, url), groups))
    assert {queue for queue, kind in kinds if kind == "added"} == set(start)
    assert kinds["q3", "removed"] == 1

    with Queue("q4", url) as queue:
        queue.add({"n": 2})
    met = latest_offsets(partial(_connected, url), {**end, "q0": start["q0"]})
    assert len({repr(offset) for offset in met.values()}) == 1, "a queue that was behind is read with the others again"


def test_a_queue_that_does_not_exist_is_refused_among_others_too(place: Callable[[str], str]) -> None:
    url = place("pgboss")
    with Queue("mail", url) as queue:
        queue.add({"n": 1})
    with pytest.raises(StoreRefused, match="'nail' does not exist"):
        plan_jobs(partial(_connected, url), ["mail", "nail"], Wanted(), 4)


def test_pieces_are_put_together_by_their_rows() -> None:
    pieces = [Piece((str(number),), None, rows) for number, rows in enumerate([500, 1, 1, 1, 500, 1])]
    assert [[piece.rows for piece in group] for group in grouped(pieces, 2)] == [[500, 1, 1], [1, 500, 1]]
    assert grouped([], 3) == []


@pytest.mark.xdist_group("spark")
def test_an_ingest_of_many_queues_reads_each_once(spark: Any, place: Callable[[str], str], lake: str) -> None:
    url = place("bullmq")
    with Connection(url) as connection:
        for number in range(70):
            Queue(f"q{number:02}", connection).add({"n": number})
    tables = Lake(lake)
    result = ingest(spark, tables, [Source(url, store_name(url), parts=2)])
    [source] = result.sources
    assert (source.error, source.events, source.jobs, len(source.offsets)) == (None, 140, 70, 70)
    assert tables.snapshots(spark).select("queue").distinct().count() == 70
