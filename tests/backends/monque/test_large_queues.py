"""Pages and figures of a large queue read a small part of it, by an index: the server's profile shows what it read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo.collection import Collection

from jobwire import Connection, Queue, State
from jobwire.backends.monque.operate import read
from jobwire.boundary import Turnover

JOBS = 6000
LIMIT = 50
STATUSES = {"pending": 3, "completed": 2, "failed": 1}


@pytest.fixture
def large(queue: Queue, jobs: Collection[dict[str, Any]]) -> datetime:
    """The queue `emails` with jobs that wait, are delayed, completed and failed, between queues of one job."""
    began = datetime.now(UTC) - timedelta(hours=1)

    def document(number: int, name: str, status: str) -> dict[str, Any]:
        at = began + timedelta(milliseconds=number // 3)
        due = at + timedelta(hours=2) if status == "pending" and number % 2 else at
        document = {"name": name, "data": number, "status": status, "nextRunAt": due, "failCount": 0}
        return {**document, "createdAt": at, "updatedAt": at}

    statuses = [status for status, share in STATUSES.items() for _ in range(share)]
    jobs.insert_many([document(number, queue.name, statuses[number // 2 % 6]) for number in range(JOBS)])
    jobs.insert_many([document(number, f"{name}-small", "pending") for number, name in enumerate("az" * 20)])
    return began


@pytest.fixture
def profile(large: datetime, jobs: Collection[dict[str, Any]]) -> Iterator[Collection[dict[str, Any]]]:
    """The server's record of commands, from here on."""
    jobs.database.command({"profile": 2, "slowms": 0})
    yield jobs.database["system.profile"]
    jobs.database.command({"profile": 0})


def reads(profile: Collection[dict[str, Any]]) -> tuple[int, int, int]:
    """Returns the number of commands, and of the entries of indexes and documents that they have read."""
    commands = {"ns": {"$regex": "monque_jobs$"}, "op": {"$in": ["query", "command", "getmore"]}}
    found = list(profile.find(commands, {"keysExamined": 1, "docsExamined": 1}))
    return (
        len(found),
        sum(one.get("keysExamined", 0) for one in found),
        sum(one.get("docsExamined", 0) for one in found),
    )


@pytest.mark.parametrize("state", [State.WAITING, State.DELAYED, State.COMPLETED, State.FAILED])
async def test_a_page_far_from_the_first_reads_little_more_than_its_jobs(
    queue: Queue, profile: Collection[dict[str, Any]], state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "MOST_SORTED", 100)
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(4):
        page = await queue.jobs(state, limit=LIMIT, cursor=cursor)
        seen += [job.id for job in page]
        cursor = page.cursor
    commands, keys, documents = reads(profile)
    assert len(set(seen)) == 4 * LIMIT
    assert commands <= 9
    assert keys < 4 * 2 * (LIMIT + 20) + 102
    assert documents < 4 * (LIMIT + 20)


async def test_a_few_finished_jobs_are_in_the_order_of_their_ends(queue: Queue, large: datetime) -> None:
    found = [job.finished_at for job in await queue.jobs(State.FAILED, limit=JOBS)]
    assert found == sorted(found, reverse=True)  # type: ignore[type-var]
    assert len(found) == JOBS // 6


async def test_pages_of_many_finished_jobs_have_each_of_them_once(
    queue: Queue, large: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "MOST_SORTED", 100)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await queue.jobs(State.FAILED, limit=77, cursor=cursor)
        seen += [job.id for job in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert (len(seen), len(set(seen))) == (JOBS // 6, JOBS // 6)


@pytest.mark.parametrize("reverse", [False, True], ids=["newest first", "oldest first"])
@pytest.mark.parametrize("sorted_by", ["nextRunAt", "updatedAt"])
async def test_finished_jobs_without_a_date_are_listed_too(
    queue: Queue, jobs: Collection[dict[str, Any]], large: datetime, monkeypatch: pytest.MonkeyPatch, *,
    sorted_by: str, reverse: bool,
) -> None:  # fmt: skip
    """Other programs can have written anything. The server compares a date with dates only."""
    monkeypatch.setattr(read, "MOST_SORTED", 100 if sorted_by == "nextRunAt" else JOBS)
    odd = ["soon", None, 7, True, {"at": 1}, "missing"]
    fine = {"name": queue.name, "data": 0, "status": "failed", "failCount": 0, "createdAt": large, "updatedAt": large}
    documents = [{**fine, "nextRunAt": large, sorted_by: odd[number % len(odd)]} for number in range(300)]
    jobs.insert_many([{key: value for key, value in one.items() if value != "missing"} for one in documents])
    paged = [job.id async for job in queue.iter_jobs(State.FAILED, reverse=reverse, page_size=77)]
    assert len(set(paged)) == len(paged) == JOBS // 6 + 300
    skipped = [job.id for offset in range(0, len(paged), 77) for job in await _at(queue, offset, reverse=reverse)]
    assert skipped == paged


async def _at(queue: Queue, offset: int, *, reverse: bool) -> list[Any]:
    return list(await queue.jobs(State.FAILED, limit=77, skip=offset, reverse=reverse))


async def test_figures_of_all_queues_read_no_more_than_they_count(
    connection: Connection, large: datetime, profile: Collection[dict[str, Any]]
) -> None:
    names = await connection.queues()
    queues = connection.backend.queue_list
    assert queues is not None
    before = reads(profile)[0]

    reading = await queues.figures(names, 200, large + timedelta(milliseconds=1900))

    commands, keys, documents = reads(profile)
    assert [(one.name, sum(one.counts.values())) for one in reading.queues] == [
        ("a-small", 20), ("emails", 800), ("z-small", 20),
    ]  # fmt: skip
    emails = reading.queues[1]
    assert emails.more == {State.WAITING, State.DELAYED, State.COMPLETED, State.FAILED}
    assert emails.oldest is not None
    assert abs(emails.oldest - large) < timedelta(milliseconds=1)
    assert emails.turnover == Turnover(297, 100, 50)
    assert commands - before <= 14
    assert keys < 4 * 1000 + 4 * 201 + 2 * 300
    assert documents < 2 * 300 + 50


async def test_a_collection_without_the_usual_indexes_is_read_too(
    connection: Connection, queue: Queue, large: datetime, jobs: Collection[dict[str, Any]]
) -> None:
    jobs.drop_indexes()
    queues = connection.backend.queue_list
    assert queues is not None
    [figures] = (await queues.figures([queue.name], 10_000, None)).queues
    assert dict(figures.counts) == dict(await queue.counts())
    assert len(await queue.jobs(State.FAILED, limit=10)) == 10
    assert len(await queue.jobs(State.WAITING, limit=10)) == 10


async def test_schedules_of_a_large_queue_are_looked_for_among_the_next_jobs(
    connection: Connection, queue: Queue, large: datetime, jobs: Collection[dict[str, Any]]
) -> None:
    await queue.schedule("report", cron="0 3 * * *")
    soon = {"name": queue.name, "data": None, "status": "pending", "failCount": 0, "repeatInterval": "* * * * *"}
    now = datetime.now(UTC)
    jobs.insert_one({**soon, "nextRunAt": now + timedelta(seconds=50), "createdAt": now, "updatedAt": now})
    part = connection.backend.schedules
    assert part is not None
    some, complete = await part.search(queue.name, 100)
    assert ({one.cron for one in some}, complete) == ({"0 3 * * *", "* * * * *"}, False)
    assert (len((await part.search(queue.name, JOBS))[0]), (await part.search(queue.name, JOBS))[1]) == (2, True)
