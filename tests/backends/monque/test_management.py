"""Monque's management: bulk actions, statistics, queue views, pages whose cursors both sides understand."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from bson import ObjectId

from jobwire import connect
from jobwire.backends.monque import Management, Selector, Sort, Statistics, Within
from jobwire.errors import InvalidOption, JobNotFound, WrongState
from jobwire.options import NewJob, Unique

from .peer import now

HOUR = timedelta(hours=1)


@pytest.fixture
def manage(connection, queue):
    return Management(connection)


@pytest.fixture
def mixed(peer, jobs):
    """Two jobs of each status, an hour apart, under two names."""
    for status in ("pending", "processing", "completed", "failed", "cancelled"):
        for age, name in ((2 * HOUR, "emails"), (HOUR, "letters")):
            made = now() - age
            jobs.insert_one({**peer.fresh(name, 1), "status": status, "createdAt": made, "failCount": 3})
    return jobs


async def test_bulk_actions_touch_only_the_statuses_that_the_peer_allows(manage, mixed):
    assert await manage.cancel_jobs(Selector()) == 2
    assert mixed.count_documents({"status": "cancelled"}) == 4
    assert await manage.cancel_jobs(Selector(status=["completed"])) == 0
    assert await manage.retry_jobs(Selector(name="emails")) == 3
    retried = list(mixed.find({"name": "emails", "status": "pending"}))
    assert {one["failCount"] for one in retried} == {0}
    assert all(timedelta() <= one["nextRunAt"] - one["updatedAt"] < timedelta(seconds=30) for one in retried)
    assert not any("failReason" in one for one in retried)


async def test_bulk_dates_are_of_creation_and_exclusive(manage, mixed):
    cut = now() - 1.5 * HOUR
    assert await manage.delete_jobs(Selector(older_than=cut, status=["completed", "failed"])) == 2
    assert await manage.delete_jobs(Selector(newer_than=cut, name="letters")) == 5
    assert {one["name"] for one in mixed.find()} == {"emails"}


async def test_deleting_everything_must_be_said(manage, mixed):
    with pytest.raises(InvalidOption, match="selector"):
        await manage.delete_jobs(Selector())
    assert mixed.count_documents({}) == 10
    with pytest.raises(InvalidOption, match="status"):
        await manage.cancel_jobs(Selector(status="paused"))


async def test_a_retry_whose_key_was_taken_again_says_so(queue, manage, jobs):
    first = await queue.add(1, unique=Unique("k"))
    await queue.cancel(first.id)
    await queue.cancel(first.id)
    await queue.add(2, unique=Unique("k"))
    with pytest.raises(WrongState, match="unique key"):
        await queue.admin.retry(first.id)
    with pytest.raises(WrongState, match="unique key"):
        await manage.retry_jobs(Selector(status="cancelled"))
    assert jobs.find_one({"_id": ObjectId(first.id)})["status"] == "cancelled"


async def test_a_pending_job_moves_to_another_time_and_no_other(queue, manage, consume, jobs):
    added = await queue.add(1)
    when = datetime.now(UTC) + HOUR
    await manage.reschedule(added.id, when)
    assert abs(jobs.find_one({"_id": ObjectId(added.id)})["nextRunAt"] - when) < timedelta(milliseconds=2)
    await manage.reschedule(added.id, datetime.now(UTC) - HOUR)
    await consume().settle([], claim=1)
    with pytest.raises(WrongState):
        await manage.reschedule(added.id, when)
    with pytest.raises(JobNotFound):
        await manage.reschedule(str(ObjectId()), when)


async def test_statistics_count_by_status_and_average_the_life_of_completed_jobs(manage, mixed):
    mixed.update_many({"status": "completed"}, [{"$set": {"updatedAt": {"$add": ["$createdAt", 1500]}}}])
    everything = await manage.statistics()
    assert everything == Statistics(2, 2, 2, 2, 2, total=10, mean_lifetime=1.5)
    assert (await manage.statistics("emails")).total == 5
    assert await manage.statistics("nothing") == Statistics()


async def test_queue_views_are_sorted_by_name_and_tell_who_runs_jobs(manage, mixed):
    mixed.update_many({"status": "processing", "name": "letters"}, {"$set": {"claimedBy": "node-1"}})
    views = await manage.queue_views()
    assert [(view.name, view.statistics.total) for view in views] == [("emails", 5), ("letters", 5)]
    assert views[1].running == {"node-1": 1}


@pytest.mark.parametrize("sort", [Sort(), Sort("createdAt"), Sort("nextRunAt", descending=True)])
async def test_pages_follow_each_other_without_overlap_forward_and_backward(queue, manage, sort):
    await queue.add_many([NewJob(n, delay=n // 2) for n in range(10)])  # ties, so that the id must decide
    everything = [job.data for job in (await manage.page(limit=100, sort=sort)).jobs]
    assert sorted(everything) == list(range(10))
    pages, cursor, last = [], None, None
    while last is None or last.has_next:
        last = await manage.page(limit=3, cursor=cursor, sort=sort)
        pages.append([job.data for job in last.jobs])
        cursor = last.cursor
    assert [data for page in pages for data in page] == everything
    back, cursor = [], last.back
    while True:
        page = await manage.page(limit=3, cursor=cursor, backward=True, sort=sort)
        back = [job.data for job in page.jobs] + back
        if not page.has_previous:
            break
        cursor = page.cursor
    assert back == everything[:-1]


async def test_a_page_is_filtered_by_name_status_and_inclusive_dates(manage, mixed):
    made = mixed.find_one({"name": "letters", "status": "pending"})["createdAt"]
    page = await manage.page(within=Within(name="letters", status="pending", created=(made, made)))
    assert [(job.name, job.native_state) for job in page.jobs] == [("letters", "pending")]


async def test_cursors_are_written_and_read_in_the_peers_form(queue, manage):
    added = await queue.add_many([NewJob(n) for n in range(3)])
    page = await manage.page(limit=1)
    raw = base64.urlsafe_b64decode(page.cursor[1:] + "==")
    assert (page.cursor[0], raw) == ("F", ObjectId(added[0].id).binary)
    theirs = "F" + base64.urlsafe_b64encode(ObjectId(added[1].id).binary).decode().rstrip("=")
    assert [job.data for job in (await manage.page(cursor=theirs)).jobs] == [2]
    sort = Sort("createdAt", descending=True)
    page = await manage.page(limit=1, sort=sort)
    shown = json.loads(base64.urlsafe_b64decode(page.cursor[1:] + "=="))
    assert (shown["id"], shown["sort"]["by"], shown["sort"]["direction"]) == (added[2].id, "createdAt", "desc")
    assert shown["sort"]["value"].endswith("Z")
    assert [job.data for job in (await manage.page(cursor=page.cursor, sort=sort)).jobs] == [1, 0]


@pytest.mark.parametrize("cursor", ["", "X123", "F", "F!!", "Fe30"])
async def test_a_cursor_that_is_none_is_refused(manage, cursor):
    with pytest.raises(InvalidOption, match="cursor"):
        await manage.page(cursor=cursor)


async def test_only_a_monque_connection_can_be_managed():
    async with connect("memory:") as connection:
        with pytest.raises(InvalidOption, match="Monque"):
            Management(connection)
