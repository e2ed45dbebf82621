"""jobwire.sync: the same names for blocking code, made from the asynchronous ones."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import jobwire
from jobwire import InvalidOption, JobCancelled, JobFailed, JobNotFound, NewJob, State, WrongState, sync

ROOT = Path(__file__).parent.parent.parent


def double(job: Any) -> int:
    return job.data * 2


def test_a_blocking_program_adds_works_and_waits() -> None:
    with sync.connect("memory:sync-whole") as connection, sync.Queue("q", connection) as queue:
        with sync.Worker("q", double, connection, concurrency=4) as worker:
            jobs = queue.add_many([NewJob(n) for n in range(20)])
            assert [job.wait(10) for job in jobs] == [n * 2 for n in range(20)]
            assert worker.stats.completed == 20
        assert queue.counts()[State.COMPLETED] == 20
        assert queue.jobs("completed", limit=5).cursor is not None
        stored = queue.get(jobs[0].id)
        assert stored is not None
        assert stored.wait(5) == 0


def test_errors_arrive_as_they_are() -> None:
    def fail(job: Any) -> None:
        raise ValueError("no")

    with sync.connect("memory:sync-errors") as connection, sync.Queue("q", connection) as queue:
        with pytest.raises(JobNotFound):
            queue.admin.remove("nothing")
        with sync.Worker("q", fail, connection), pytest.raises(JobFailed, match="no"):
            queue.add(1).wait(10)


def test_events_are_a_plain_iterator() -> None:
    with sync.Queue("q", "memory:") as queue:
        cursor = next(iter([queue.add(1), queue.add(2)]))
        assert cursor.id
        events = queue.events(since="0")
        assert [next(events).native_type for _ in range(2)] == ["added", "waiting"]
        events.close()  # type: ignore[attr-defined]


def test_all_jobs_of_a_state_are_a_plain_iterator() -> None:
    with sync.Queue("q", "memory:sync-iterating") as queue:
        queue.add_many([NewJob(n) for n in range(7)])
        jobs = queue.iter_jobs(page_size=3)
        assert next(jobs).data == 0
        rest = list(jobs)
        assert [job.data for job in rest] == [1, 2, 3, 4, 5, 6]
        assert {type(job) for job in rest} == {sync.Job}
        assert [job.data for job in queue.iter_jobs("waiting", reverse=True, page_size=2)] == [6, 5, 4, 3, 2, 1, 0]
        for job in queue.iter_jobs(page_size=2):
            if job.data % 2:
                queue.admin.remove(job.id)
        assert [job.data for job in queue.iter_jobs()] == [0, 2, 4, 6]
        with pytest.raises(InvalidOption, match="page_size"):
            next(queue.iter_jobs(page_size=0))


def test_run_blocks_until_another_thread_stops_the_worker() -> None:
    with sync.connect("memory:sync-run") as connection, sync.Queue("q", connection) as queue:
        worker = sync.Worker("q", double, connection)
        thread = threading.Thread(target=lambda: (queue.add(4).wait(10), worker.stop()))
        thread.start()
        worker.run(signals=False)
        thread.join()
        assert worker.stats.completed == 1


def test_a_handler_in_a_thread_may_pause_its_worker_but_not_wait_for_itself() -> None:
    workers: dict[str, sync.Worker] = {}

    def handler(job: Any) -> bool:
        workers[job.data["pause"]].pause(wait=job.data["wait"])
        return workers[job.data["pause"]].paused

    with (
        sync.connect("memory:sync-pause") as connection,
        sync.Queue("q", connection) as queue,
        sync.Worker("q", handler, connection) as worker,
        sync.Worker("idle", double, connection) as other,
    ):
        workers |= {"own": worker, "other": other}
        with pytest.raises(JobFailed, match="wait: must be False in a handler of this worker"):
            queue.add({"pause": "own", "wait": True}).wait(10)
        assert not worker.paused
        assert queue.add({"pause": "other", "wait": True}).wait(10) is True
        assert queue.add({"pause": "own", "wait": False}).wait(10) is True


def test_a_blocking_program_pauses_its_worker_and_cancels_a_job() -> None:
    began, asked = threading.Event(), threading.Event()

    def handler(job: Any) -> None:
        began.set()
        assert asked.wait(10)
        if job.cancelled:
            raise JobCancelled

    with (
        sync.connect("memory:sync-control") as connection,
        sync.Queue("q", connection) as queue,
        sync.Worker("q", handler, connection) as worker,
    ):
        worker.pause()
        job = queue.add(1)
        assert worker.paused
        assert not began.is_set()
        worker.resume()
        assert began.wait(10)
        assert worker.cancel(job.id, "enough") is True
        asked.set()
        with pytest.raises(JobFailed, match="cancelled: enough"):
            job.wait(10)


@pytest.mark.parametrize("name", ["Queue", "QueueAdmin", "Worker", "Connection", "Flow"])
def test_every_public_coroutine_has_a_blocking_twin_inherited_or_not(name: str) -> None:
    original, blocking = getattr(jobwire, name), getattr(sync, name)
    coroutines = {
        member
        for member, value in inspect.getmembers(original)
        if not member.startswith("_") and (inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value))
    }
    properties = {
        member
        for member, value in inspect.getmembers(original)
        if not member.startswith("_") and isinstance(value, property)
    }
    assert any(coroutines >= some for some in ({"open", "close"}, {"run", "stop"}, {"retry", "pause"}))
    twins = {member: inspect.getattr_static(blocking, member, None) for member in coroutines}
    assert [member for member, twin in twins.items() if not inspect.isfunction(twin)] == []
    assert [
        member
        for member, twin in twins.items()
        if inspect.iscoroutinefunction(twin) or inspect.isasyncgenfunction(twin)
    ] == []
    assert {
        member for member in properties if not isinstance(inspect.getattr_static(blocking, member), property)
    } == set()


def test_operators_methods_block_too() -> None:
    with sync.Queue("q", "memory:sync-operators") as queue:
        assert isinstance(queue.admin, sync.QueueAdmin)
        assert queue.admin is queue.admin
        queue.admin.pause()
        assert queue.admin.paused() is True
        queue.admin.resume()
        assert queue.admin.paused() is False
        later = queue.add("later", delay=3600)
        queue.admin.promote(later.id)
        assert [job.data for job in queue.jobs("waiting")] == ["later"]
        queue.admin.drain()
        assert queue.get(later.id) is None


def test_a_job_is_claimed_and_settled_by_blocking_calls() -> None:
    with sync.Queue("q", "memory:sync-claim") as queue:
        assert queue.claim() is None
        assert queue.claim(timeout=0.05) is None
        added = queue.add_many([NewJob({"n": 1}), NewJob(2), NewJob(3)])
        job = queue.claim(timeout=5)
        assert isinstance(job, sync.ClaimedJob)
        assert (job.id, job.data, job.attempts_made, job.settled) == (added[0].id, {"n": 1}, 0, False)
        assert isinstance(job.snapshot, sync.Job)
        job.update_progress(50)
        job.extend()
        job.complete({"ok": True})
        with pytest.raises(WrongState, match="settled once"):
            job.release()
        for error in (ValueError("no such address"), KeyboardInterrupt()):
            claimed = queue.claim()
            assert claimed is not None
            with pytest.raises(type(error)), claimed:
                raise error
        stored = [queue.get(job.id) for job in added]
        assert [job.state for job in stored if job] == [State.COMPLETED, State.FAILED, State.WAITING]


def test_every_public_coroutine_of_a_claimed_job_has_a_blocking_twin() -> None:
    """And every field: what the asynchronous one shows, the blocking one shows."""
    public = {name: value for name, value in inspect.getmembers(jobwire.ClaimedJob) if not name.startswith("_")}
    coroutines = {name for name, value in public.items() if inspect.iscoroutinefunction(value)}
    properties = {name for name, value in public.items() if isinstance(value, property)}
    assert coroutines >= {"complete", "fail", "release", "snooze", "extend", "log", "update_progress"}
    assert properties >= {"id", "data", "attempts_made", "settled"}
    twins = {name: inspect.getattr_static(sync.ClaimedJob, name) for name in coroutines | properties}
    assert {name for name, twin in twins.items() if isinstance(twin, property)} == properties
    assert [name for name in coroutines if inspect.iscoroutinefunction(twins[name])] == []


def test_the_stub_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "sync_stub.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
