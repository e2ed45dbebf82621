"""Queues moved between real stores, and looked at afterwards through the ordinary API."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import permutations
from typing import Any

import pytest

from jobwire import AddStatus, NewJob, Unique
from jobwire.errors import InvalidOption, JobwireError
from jobwire.pipeline.datasource.read_with import read_with
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.move import abandon_move, move, plan_move, verify_move
from jobwire.pipeline.move.plan import are_few, once
from jobwire.sync import Queue
from pipeline.move_samples import PRIORITIES, Seen, filled, payload, samples, seen

pytestmark = [pytest.mark.xdist_group("spark-movers"), pytest.mark.timeout(600)]

COUNT = 60
SEVERAL_PORTIONS = 2500
"""Jobs are added in portions of 1,000 and removed in portions of 500."""
Place = Callable[[str], str]


@pytest.mark.parametrize(("source", "target"), list(permutations(PRIORITIES, 2)))
def test_jobs_arrive_in_their_order_with_their_due_times_and_none_is_left(
    source: str, target: str, place: Place, spark: Any, lake: str
) -> None:
    here, there = place(source), place(target)
    count = SEVERAL_PORTIONS if (source, target) == ("bullmq", "pgboss") else COUNT
    filled(here, "mail", samples(source, count))
    before = seen(here, "mail")

    result = move(spark, Lake(lake), here, there, "mail")

    after = seen(there, "mail")
    assert [job["n"] for job in after.ready] == [job["n"] for job in before.ready]
    assert after.ready == before.ready
    assert {job["n"]: job for job in after.ready} == {n: payload(n) for n in range(count) if n % 5 != 4}
    assert {n: abs(ms - before.due[n]) <= 1 for n, ms in after.due.items()} == dict.fromkeys(before.due, True)
    assert seen(here, "mail") == Seen([], {})
    assert (result.moved, result.left, result.remaining) == (count, 0, {})
    assert result.verified.checksum_expected == result.verified.checksum_found
    with Queue("mail", here) as old, Queue("mail", there) as new:
        assert (old.admin.paused(), new.admin.paused()) == (True, False), "the source stays paused and the target runs"
    assert result.source_paused
    assert "point producers and workers to" in result.next_step


def test_a_move_within_a_protocol_keeps_names_priorities_ids_and_keys(place: Place, spark: Any, lake: str) -> None:
    here, there = place("bullmq"), place("bullmq")
    with Queue("mail", here) as queue:
        queue.add({"n": 1}, name="welcome", id="first", priority=9, attempts=5, unique=Unique("one"))

    move(spark, Lake(lake), here, there, "mail", to_queue="post")

    with Queue("post", there) as queue:
        [job] = queue.jobs(state="waiting")
        again = queue.add({"n": 2}, unique=Unique("one"))
    assert (job.id, job.name, job.priority, job.attempts, job.data) == ("first", "welcome", 9, 5, {"n": 1})
    assert (again.id, again.add_status) == ("first", AddStatus.DUPLICATE)


def test_schedules_go_along_and_what_the_target_lacks_is_told(place: Place, spark: Any, lake: str) -> None:
    here, there = place("bullmq"), place("pgboss")
    with Queue("mail", here) as queue:
        queue.schedule("nightly", cron="0 3 * * *", tz="Europe/Berlin", data={"what": "report"})
        queue.schedule("often", every=300, data={"what": "poll"})
        queue.schedule("odd", every=7, data={"what": "odd"})
        queue.add({"n": 1})

    result = move(spark, Lake(lake), here, there, "mail")

    with Queue("mail", here) as old, Queue("mail", there) as new:
        kept = {one.key for one in old.schedules()}
        moved = {one.key: (one.cron, one.tz, one.data) for one in new.schedules()}
        ready = [job.data for job in new.jobs(state="waiting")]
    assert kept == {"odd"}
    assert moved["nightly"] == ("0 3 * * *", "Europe/Berlin", {"what": "report"})
    assert moved["often"][0] == "*/5 * * * *"
    # BullMQ makes the first job of an interval at once: one that waits is moved like any other.
    assert ready == [{"what": "poll"}, {"n": 1}]
    assert len(result.schedules) == 2
    assert "odd: every 7 s: stays" in result.schedules_that_stay[0]


def test_failed_and_completed_jobs_go_along_if_asked_for(place: Place, spark: Any, lake: str) -> None:
    here, there = place("pgboss"), place("bullmq")
    _finish(here, "mail", {"n": 1}, fails=False)
    _finish(here, "mail", {"n": 2}, fails=True)

    result = move(spark, Lake(lake), here, there, "mail", include=frozenset({"completed", "failed"}))

    with Queue("mail", there) as queue:
        [done] = queue.jobs(state="completed")
        [failed] = queue.jobs(state="failed")
    assert (done.data, done.result) == ({"n": 1}, {"ok": True})
    assert (failed.data, failed.error) == ({"n": 2}, "no such address")
    assert (result.finished, result.remaining) == (2, {})


def test_names_stop_a_move_to_a_protocol_without_them_unless_they_may_be_dropped(
    place: Place, spark: Any, lake: str
) -> None:
    here, there = place("bullmq"), place("pgboss")
    filled(here, "mail", [NewJob({"n": 1}, name="welcome"), NewJob({"n": 2})])

    plan = plan_move(spark, here, there, "mail")
    with pytest.raises(JobwireError, match="names: 1 job, such as 1"):
        move(spark, Lake(lake), here, there, "mail")
    with Queue("mail", here) as queue:
        untouched = (queue.admin.paused(), queue.counts()["waiting"])
    result = move(spark, Lake(lake), here, there, "mail", drop=frozenset({"names"}))

    assert not plan.possible
    assert [(one.what, one.count, one.stops) for one in plan.hindrances] == [("names", 1, True)]
    assert untouched == (False, 2)
    assert result.moved == 2


def test_a_job_that_the_target_can_not_hold_stays_if_that_is_allowed(place: Place, spark: Any, lake: str) -> None:
    here, there = place("bullmq"), place("pgboss")
    filled(here, "mail", [NewJob({"n": 1, "text": "a\x00b"}), NewJob({"n": 2})])

    result = move(spark, Lake(lake), here, there, "mail", leave=True)

    assert (result.moved, result.left) == (1, 1)
    assert [job["n"] for job in seen(there, "mail").ready] == [2]
    assert [job["n"] for job in seen(here, "mail").ready] == [1]


def test_an_id_that_the_target_already_has_is_never_taken_for_the_moved_job(
    place: Place, spark: Any, lake: str
) -> None:
    here, there = place("bullmq"), place("bullmq")
    filled(here, "mail", [NewJob({"n": 1}, id="same")])
    filled(there, "mail", [NewJob({"n": 1}, id="same")])

    with pytest.raises(JobwireError, match="taken: 1 job, such as same"):
        move(spark, Lake(lake), here, there, "mail")

    assert [job["n"] for job in seen(here, "mail").ready] == [1]


def test_a_plan_changes_nothing_and_tells_what_would_become_of_the_jobs(place: Place, spark: Any) -> None:
    here, there = place("bullmq"), place("monque")
    filled(here, "mail", samples("bullmq", 50))
    with Queue("mail", here) as queue:
        queue.schedule("often", every=10, data={"n": -1})

    plan = plan_move(spark, here, there, "mail")

    with Queue("mail", here) as queue:
        assert not queue.admin.paused()
        assert queue.counts()["waiting"] == 41
    assert (plan.ready, plan.delayed, plan.possible) == (41, 10, True)
    assert plan.schedules == ["often: every 10 s becomes cron */10 * * * * *"]
    assert "1 ms apart" in plan.priorities
    assert plan.pause_seconds > 0
    assert "to examine 51 jobs took" in plan.notes[-1]


def test_a_move_that_finds_a_copy_changed_removes_nothing_and_can_be_abandoned(
    place: Place, spark: Any, lake: str
) -> None:
    here, there = place("bullmq"), place("pgboss")
    filled(here, "mail", samples("bullmq", 20))
    before = seen(here, "mail")

    def meddle(stage: str, done: int, total: int | None) -> None:
        if stage == "verify" and done == 0:
            with Queue("mail", there) as queue:
                queue.admin.remove(queue.jobs(state="waiting")[0].id)

    with pytest.raises(JobwireError, match=r"of 20 jobs .*: 1 missing; the source still has them all"):
        move(spark, Lake(lake), here, there, "mail", progress=meddle)
    compared = verify_move(spark, Lake(lake), here, there, "mail")
    removed = abandon_move(spark, Lake(lake), here, there, "mail")

    with Queue("mail", here) as old, Queue("mail", there) as new:
        assert (old.admin.paused(), new.admin.paused()) == (False, False)
    assert seen(here, "mail") == before
    assert seen(there, "mail").ready == []
    assert (compared.equal, compared.missing, removed) == (19, 1, 19)


def test_a_job_that_a_worker_took_from_the_source_meanwhile_is_not_in_the_target(
    place: Place, spark: Any, lake: str
) -> None:
    here, there = place("pgboss"), place("bullmq")
    filled(here, "mail", samples("pgboss", 20))
    with Queue("mail", here) as queue:
        chosen = queue.jobs(state="waiting")[3]

    def meddle(stage: str, done: int, total: int | None) -> None:
        if stage == "verify" and done > 0:
            with Queue("mail", here) as queue:
                queue.cancel(chosen.id)

    result = move(spark, Lake(lake), here, there, "mail", progress=meddle)

    assert chosen.data not in seen(there, "mail").ready
    assert (result.moved, result.taken_back, result.remaining) == (19, 1, {"cancelled": 1})


def test_a_queue_can_not_be_moved_onto_itself(place: Place, spark: Any, lake: str) -> None:
    here = place("bullmq")

    with pytest.raises(InvalidOption, match="is the queue that the jobs are in"):
        move(spark, Lake(lake), here, here, "mail")


def test_a_job_that_was_read_in_two_states_is_one_job(spark: Any) -> None:
    read = [("7", True, "delayed"), ("7", False, "wait"), ("8", False, "wait")]

    rows = once(spark.createDataFrame(read, "id string, late boolean, native_state string")).collect()

    assert sorted(map(tuple, rows)) == [("7", False, "wait"), ("8", False, "wait")]


def test_jobs_that_source_and_target_show_twice_are_moved_once(
    place: Place, spark: Any, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(*given: Any, **named: Any) -> Any:
        rows = read_with(*given, **named)
        return rows.union(rows)

    for reader in ("plan", "verify"):
        monkeypatch.setattr(import_module(f"jobwire.pipeline.move.{reader}"), "read_with", twice)
    here, there = place("bullmq"), place("bridgemq")
    filled(here, "mail", samples("bullmq", COUNT))
    before = seen(here, "mail")

    result = move(spark, Lake(lake), here, there, "mail")

    assert seen(there, "mail").ready == before.ready
    assert (result.moved, result.verified.equal, result.remaining) == (COUNT, COUNT, {})
    assert result.verified.checksum_expected == result.verified.checksum_found


def test_few_jobs_are_moved_by_a_session_that_starts_quickly(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    here = place("bullmq")
    filled(here, "mail", [NewJob({"n": 1}), NewJob({"n": 2})])

    assert are_few(here, "mail")
    monkeypatch.setattr("jobwire.pipeline.move.plan._MANY_JOBS", 2)
    assert not are_few(here, "mail")


def test_an_empty_queue_is_moved_too(place: Place, spark: Any, lake: str) -> None:
    here, there = place("pgboss"), place("monque")
    filled(here, "mail", [])

    assert move(spark, Lake(lake), here, there, "mail").moved == 0


def _finish(url: str, queue: str, data: Any, *, fails: bool) -> None:
    from jobwire import Unrecoverable
    from jobwire.sync import Worker

    def handle(job: Any) -> Any:
        if fails:
            raise Unrecoverable("no such address")
        return {"ok": True}

    with Queue(queue, url) as there:
        job = there.add(data)
        worker = Worker(queue, handle, url)
        import threading

        thread = threading.Thread(target=lambda: worker.run(signals=False))
        thread.start()
        try:
            job.wait(timeout=60)
        except JobwireError:
            assert fails
        finally:
            worker.stop()
            thread.join()


def test_several_tasks_add_the_jobs_where_each_has_a_due_time_of_its_own(
    place: Place, spark: Any, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("jobwire.pipeline.move.copy"), "_FEW", COUNT // 2)
    here, there = place("pgboss"), place("monque")
    filled(here, "mail", samples("pgboss", COUNT))
    before = seen(here, "mail")

    result = move(spark, Lake(lake), here, there, "mail")

    after = seen(there, "mail")
    assert after.ready == before.ready
    assert (result.moved, result.left, result.verified.sound) == (COUNT, 0, True)
