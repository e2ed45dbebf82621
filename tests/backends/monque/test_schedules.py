"""Recurring jobs: one document for all of a schedule's runs, stopped and changed while peers look on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from awaiting import eventually
from jobwire.boundary import Completed, Verdict
from jobwire.cron import Cron
from jobwire.errors import InvalidOption, WrongState
from jobwire.native import MonqueWorker
from jobwire.options import Unique

from .peer import now


async def test_a_schedule_is_due_at_the_first_time_after_now(queue, jobs):
    made = await queue.schedule("daily", cron="30 4 * * *", data=[1])
    stored = jobs.find_one({"uniqueKey": "daily"})
    assert made.next_run == stored["nextRunAt"] == Cron.parse("30 4 * * *").next_after(stored["createdAt"])
    assert (stored["repeatInterval"], stored["data"]) == ("30 4 * * *", [1])


async def test_the_peers_schedules_are_listed_with_ours_and_can_be_stopped(queue, peer, jobs):
    unnamed = peer.enqueue("emails", 1, repeatInterval="@daily", run_at=now() + timedelta(hours=1))
    peer.enqueue("emails", 2, repeatInterval="@hourly", uniqueKey="hourly", run_at=now() + timedelta(hours=1))
    assert {one.key: one.cron for one in await queue.schedules()} == {
        str(unnamed["_id"]): "@daily",
        "hourly": "@hourly",
    }
    assert await queue.unschedule("hourly") is True
    assert await queue.unschedule(str(unnamed["_id"])) is True
    assert jobs.count_documents({}) == 0


async def test_a_schedule_that_is_stopped_while_its_job_runs_runs_no_more(queue, consume, jobs):
    await queue.schedule("pulse", cron="* * * * * *")
    consumer = consume()
    [claim] = await eventually(lambda: _claims(consumer))
    assert await queue.unschedule("pulse") is True
    settled = await consumer.settle([Completed(claim, b"null")], claim=0)
    assert settled.verdicts[0].value == "completed"
    assert [one["status"] for one in jobs.find()] == ["completed"]


async def test_a_schedule_that_is_changed_while_its_job_runs_keeps_to_the_new_text_afterwards(queue, consume, jobs):
    await queue.schedule("pulse", cron="* * * * * *", data="old")
    consumer = consume()
    [claim] = await eventually(lambda: _claims(consumer))
    await queue.schedule("pulse", cron="0 4 * * *", data="new")
    await consumer.settle([Completed(claim, b"null")], claim=0)
    [read] = await queue.schedules()
    assert (read.cron, read.data, jobs.count_documents({})) == ("0 4 * * *", "new", 1)


async def _claims(consumer):
    return (await consumer.settle([], claim=1)).claims


async def test_a_key_that_a_single_job_holds_takes_no_schedule(queue, jobs):
    await queue.add(1, unique=Unique("k"))
    with pytest.raises(WrongState, match="does not repeat"):
        await queue.schedule("k", cron="@daily")
    assert "repeatInterval" not in jobs.find_one()


@pytest.mark.parametrize("cron", ["61 * * * *", "* * *", "0 0 31 2 *", "15W * * * *", "@midnight"])
async def test_a_text_that_the_peers_parser_refuses_is_refused(queue, jobs, cron):
    with pytest.raises(InvalidOption, match="cron"):
        await queue.schedule("odd", cron=cron)
    assert jobs.count_documents({}) == 0


async def test_a_recurring_job_keeps_the_note_of_its_last_run_only(queue, work, jobs):
    await queue.schedule("pulse", cron="* * * * * *")
    async with work(lambda job: "beat") as worker:
        await eventually(lambda: worker.stats.completed >= 2)
    [note] = jobs.database["monque_jobs_jobwire"].find({"name": "emails"})
    assert [run["result"] for run in note["runs"].values()] == ['"beat"']


async def test_a_schedule_that_failed_for_good_is_dead_until_someone_retries_it(queue, work, jobs):
    await queue.schedule("pulse", cron="* * * * * *")

    async def handler(job):
        raise RuntimeError("broken")

    async with work(handler, native=MonqueWorker(max_retries=1)):
        await eventually(lambda: jobs.find_one({"uniqueKey": "pulse"})["status"] == "failed")
    assert await queue.schedules() == []
    await queue.admin.retry(str(jobs.find_one()["_id"]))
    [again] = await queue.schedules()
    assert again.key == "pulse"


@pytest.mark.parametrize(
    ("change", "status", "refused"),
    [
        ({"$set": {"repeatInterval": "0 0 1 1 *"}}, "pending", False),
        ({"$set": {"repeatInterval": "no cron"}}, "pending", True),
        ({"$set": {"repeatInterval": ""}}, "completed", False),
        ({"$set": {"repeatInterval": 5}}, "completed", False),
        ({"$unset": {"repeatInterval": ""}}, "completed", False),
    ],
    ids=["other", "invalid", "empty", "no text", "gone"],
)
async def test_a_recurring_job_goes_on_by_the_text_that_it_has_when_its_run_ends(
    queue, consume, jobs, *, change, status, refused
):
    made = await queue.schedule("pulse", cron="* * * * * *")
    consumer = consume()

    async def claimed():
        return (await consumer.settle([], claim=1)).claims

    [claim] = await eventually(claimed)
    jobs.update_one({"_id": made.raw["_id"]}, change)
    settled = await consumer.settle([Completed(claim, b'"done"')], claim=0)
    stored = jobs.find_one({"_id": made.raw["_id"]})
    assert stored["status"] == status
    if refused:
        assert settled.verdicts == [Verdict.RETRIED]
        assert "no cron" in stored["failReason"]
        return
    assert settled.verdicts == [Verdict.COMPLETED]
    if status == "pending":
        due = stored["nextRunAt"]
        assert (due.month, due.day, due.hour, due.minute) == (1, 1, 0, 0)


async def test_a_schedule_that_is_replaced_during_its_run_runs_next_by_the_new_one(queue, work, jobs):
    await queue.schedule("pulse", cron="* * * * * *")

    async def handler(job):
        await queue.schedule("pulse", cron="0 0 1 1 *")

    async with work(handler) as worker:
        await eventually(lambda: worker.stats.completed == 1)
    [one] = await queue.schedules()
    assert (one.cron, one.next_run.month, one.next_run.day) == ("0 0 1 1 *", 1, 1)
