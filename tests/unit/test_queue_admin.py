"""The two halves of a queue: producers' and readers' methods on it, operators' on its `admin`."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
from dataclasses import asdict
from typing import Any

import pytest

import jobwire
from jobwire import Queue, QueueAdmin, Worker, sync

PRODUCERS = {
    *("open", "close", "add", "add_job", "add_many", "cancel", "claim", "get", "jobs", "iter_jobs", "counts"),
    *("children", "logs", "wait", "events", "schedule", "unschedule", "schedules", "search_schedules"),
}
OPERATORS = {
    *("retry", "retry_all", "promote", "promote_all", "remove", "drain", "clean", "obliterate"),
    *("update_data", "change_priority", "change_delay", "log", "clear_logs", "update_progress"),
    *("pause", "resume", "paused", "limits", "limit_rate", "limit_concurrency", "throttle"),
    *("retry_many", "promote_many", "remove_many", "cancel_many", "last_events"),
    *("counts_by_priority", "workers", "publish", "trim_events", "unique_owner", "release_unique", "unroutable"),
}
QUEUES = {"asynchronous": Queue, "blocking": sync.Queue}


def methods(of: type[Any]) -> set[str]:
    return {name for name, _ in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}


def test_each_method_is_on_one_half() -> None:
    assert methods(Queue) == methods(sync.Queue) == PRODUCERS
    assert methods(QueueAdmin) == methods(sync.QueueAdmin) == OPERATORS


@pytest.mark.parametrize("name", sorted(OPERATORS))
@pytest.mark.parametrize("kind", QUEUES.values(), ids=QUEUES.keys())
def test_a_queue_that_is_asked_for_an_operators_method_names_its_place(kind: type[Any], name: str) -> None:
    queue = kind("q", "memory:")
    with pytest.raises(AttributeError) as refusal:
        getattr(queue, name)
    assert str(refusal.value) == (
        f"'Queue' object has no attribute '{name}'; operators' methods are on queue.admin: queue.admin.{name}(...)"
    )
    # With an object Python would append its most similar name to the message: "Did you mean: 'logs'?"
    assert (refusal.value.name, refusal.value.obj) == (name, None)


@pytest.mark.parametrize("name", ["nothing", "_access_", "_require_done", "__len__"])
@pytest.mark.parametrize("kind", QUEUES.values(), ids=QUEUES.keys())
def test_other_names_are_missing_as_on_any_object(kind: type[Any], name: str) -> None:
    queue = kind("q", "memory:")
    assert not hasattr(queue, name)
    with pytest.raises(AttributeError, match=rf"^'Queue' object has no attribute '{name}'$"):
        getattr(queue, name)


def test_python_can_still_suggest_a_similar_name_of_the_queue() -> None:
    queue = Queue("q", "memory:")
    with pytest.raises(AttributeError) as refusal:
        queue.count  # noqa: B018
    assert (refusal.value.name, refusal.value.obj) == ("count", queue)


def test_a_queue_that_could_not_be_made_has_an_ordinary_error() -> None:
    for kind in QUEUES.values():
        with pytest.raises(jobwire.InvalidOption, match="queue"):
            kind("", "memory:")


@pytest.mark.parametrize(
    "live",
    [Queue("q", "memory:"), Worker("q", print, "memory:"), jobwire.connect("memory:")],
    ids=["queue", "worker", "connection"],
)
def test_what_has_connections_can_not_be_pickled_and_names_what_to_do(live: object) -> None:
    with pytest.raises(TypeError, match="pass the URL"):
        pickle.dumps(live)


@pytest.mark.parametrize("kind", [Queue, sync.Queue])
def test_a_job_that_was_read_through_a_queue_is_copied_and_pickled(kind: type[Any]) -> None:
    queue: Any = kind("q", "memory:")
    if kind is Queue:
        job = asyncio.run(queue.add({"n": 1}))
    else:
        job = queue.add({"n": 1})
        queue.close()
    assert asdict(job)["data"] == {"n": 1}
    assert pickle.loads(pickle.dumps(job)) == copy.deepcopy(job) == job


async def test_the_admin_is_one_object_that_names_its_queue_without_its_password() -> None:
    queue = Queue("mail", "bullmq+redis://user:secret@127.0.0.1:1/0")
    assert queue.admin is queue.admin
    assert repr(queue.admin).startswith("<QueueAdmin 'mail' bullmq+redis://")
    assert "secret" not in repr(queue.admin)
