"""Pause, workers, deduplication and the rest of a queue's settings hold for both languages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from awaiting import eventually
from jobwire import ActiveJob, AddStatus, Queue, State, Unique, Worker

from ..peer import NodeJob, NodeQueue, Peer

Work = Callable[..., Worker]
Finished = Callable[[str], Awaitable[NodeJob]]


async def _done(job: ActiveJob) -> str:
    return "done"


async def test_jobwire_workers_honour_a_pause_by_node(node: NodeQueue, queue: Queue, work: Work) -> None:
    before = await node.add("before")
    await node.ask("pause")
    assert await queue.admin.paused()
    during = await queue.add("during")
    async with work(_done, concurrency=2) as worker:

        async def looked() -> bool:
            return worker.stats.calls > 0

        await eventually(looked)
        assert (worker.stats.claimed, (await node.get(before)).state) == (0, "waiting")
        await node.ask("resume")
        assert [await queue.wait(one, 20) for one in (before, during.id)] == ["done", "done"]


async def test_node_workers_honour_a_pause_by_jobwire(
    node: NodeQueue, queue: Queue, blocked_workers: Callable[[int], Any]
) -> None:
    before = await queue.add("before")
    await queue.admin.pause()
    assert await node.ask("isPaused")
    during = await node.add("during")
    async with node.work("reflect") as worker:
        await blocked_workers(1)
        assert await worker.runs() == []
        await queue.admin.resume()
        assert [await queue.wait(one, 20) for one in (before.id, during)] == ["before", "during"]


# Node 5 renames the waiting list when it pauses or resumes and overwrites what stands there. It loses jobs by itself
# when it resumes a queue to which Node 6 added, or that Node 6 had paused with jobs in it; other orders must be safe.
SAFE = [
    (pauses, adds, resumes)
    for pauses in ("5", "6", "jobwire")
    for resumes in ("5", "6", "jobwire")
    for adds in ("5", "6", "jobwire")
    if resumes != "5" or "6" not in (pauses, adds)
]


@pytest.mark.parametrize(("pauses", "adds", "resumes"), SAFE)
async def test_no_job_is_lost_when_majors_and_jobwire_pause_and_resume_each_others_queue(
    *, both_majors: dict[str, Peer], unique: str, queue: Queue, work: Work, pauses: str, adds: str, resumes: str
) -> None:
    side = _sides(both_majors, unique, queue)
    ids = [await side[adds].add("before 1"), await side["jobwire"].add("before 2")]
    await side[pauses].pause()
    ids += [await side[adds].add("during 1"), await side["jobwire"].add("during 2")]
    ids += [await side[adds].add("during, urgent", priority=1)]
    await side[resumes].resume()
    order = []

    async def handle(job: ActiveJob) -> None:
        order.append(job.id)

    async with work(handle):
        for job_id in ids:
            await queue.wait(job_id, 20)
    assert sorted(order) == sorted(ids)


@pytest.mark.parametrize("adds", ["5", "6", "jobwire"])
@pytest.mark.parametrize("pauses_first", ["5", "6", "jobwire"])
async def test_no_job_is_lost_when_jobwire_pauses_a_queue_that_is_paused(
    *, both_majors: dict[str, Peer], unique: str, queue: Queue, work: Work, pauses_first: str, adds: str
) -> None:
    side = _sides(both_majors, unique, queue)
    ids = [await side["jobwire"].add("before")]
    await side[pauses_first].pause()
    ids += [await side[adds].add("during")]
    await queue.admin.pause()
    ids += [await side["6"].add("later"), await side["jobwire"].add("last")]
    assert (await queue.counts())[State.ACTIVE] == 0
    await queue.admin.resume()
    async with work(_done):
        assert [await queue.wait(job_id, 20) for job_id in ids] == ["done"] * len(ids)


class _Side:
    """The three verbs of the tests above, by whoever it is."""

    def __init__(self, add: Callable[..., Awaitable[Any]], pause: Callable[[], Any], resume: Callable[[], Any]) -> None:
        self._add = add
        self.pause = pause
        self.resume = resume

    async def add(self, data: Any, **options: Any) -> str:
        added = await self._add(data, **options)
        return added if isinstance(added, str) else added.id


def _sides(majors: dict[str, Peer], prefix: str, queue: Queue) -> dict[str, _Side]:
    sides = {"jobwire": _Side(queue.add, queue.admin.pause, queue.admin.resume)}
    for major, peer in majors.items():
        node = NodeQueue(peer, prefix, queue.name)
        sides[major] = _Side(node.add, lambda node=node: node.ask("pause"), lambda node=node: node.ask("resume"))
    return sides


async def test_each_language_lists_the_workers_of_the_other(node: NodeQueue, queue: Queue, work: Work) -> None:
    async with work(_done, name="pen"), node.work("echo", name="quill"):

        async def both_listed() -> Any:
            seen = [one["rawname"] for one in await node.ask("getWorkers")], await queue.admin.workers()
            return seen if len(seen[0]) == len(seen[1]) == 2 else None

        by_node, by_jobwire = await eventually(both_listed)
    assert sorted(name.rpartition(":")[2] for name in by_node) == ["pen", "quill"]
    assert sorted(one.name for one in by_jobwire) == ["pen", "quill"]


async def test_a_worker_that_has_stopped_is_no_longer_listed_by_node(
    node: NodeQueue, work: Work, blocked_workers: Callable[[int], Any]
) -> None:
    async with work(_done):
        await blocked_workers(1)
        assert len(await node.ask("getWorkers")) == 1

    async def nobody() -> bool:
        return await node.ask("getWorkers") == []

    await eventually(nobody)


async def test_a_deduplication_key_taken_by_node_refuses_jobwire_until_the_job_is_done(
    node: NodeQueue, queue: Queue, work: Work, finished_in_node: Finished
) -> None:
    first = await node.add("first", deduplication={"id": "monthly"})
    refused = await queue.add("second", unique=Unique("monthly"))
    assert (refused.id, refused.add_status) == (first, AddStatus.DUPLICATE)
    async with work(_done):
        await finished_in_node(first)
    third = await queue.add("third", unique=Unique("monthly"))
    assert (third.add_status, (await node.get(third.id)).deduplicationId) == (AddStatus.ADDED, "monthly")


async def test_a_deduplication_key_taken_by_jobwire_refuses_node_until_the_job_is_done(
    node: NodeQueue, queue: Queue, finished_in_node: Finished
) -> None:
    first = await queue.add("first", unique=Unique("monthly"))
    assert await node.add("second", deduplication={"id": "monthly"}) == first.id
    async with node.work("reflect"):
        assert (await finished_in_node(first.id)).returnvalue == "first"
    assert await node.add("third", deduplication={"id": "monthly"}) != first.id


async def test_a_deduplication_window_is_shared(node: NodeQueue, queue: Queue, work: Work) -> None:
    """With a time to live the key outlasts the job."""
    first = await queue.add("first", unique=Unique("hourly", ttl=3600))
    async with work(_done):
        await first.wait(timeout=20)
    assert await node.add("second", deduplication={"id": "hourly", "ttl": 3_600_000}) == first.id


async def test_the_same_id_is_one_job_whoever_adds_it_again(node: NodeQueue, queue: Queue) -> None:
    assert await node.add("first", jobId="invoice-7") == "invoice-7"
    again = await queue.add("second", id="invoice-7")
    assert (again.id, again.add_status) == ("invoice-7", AddStatus.DUPLICATE)
    assert (await queue.get("invoice-7")).data == "first"
    assert (await node.counts())["waiting"] == 1


async def test_a_limit_on_the_whole_queue_set_by_node_holds_for_jobwire(
    node: NodeQueue, queue: Queue, work: Work
) -> None:
    running, most = 0, 0

    async def handle(job: ActiveJob) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await job.update_progress(1)
        running -= 1

    await node.ask("setGlobalConcurrency", concurrency=2)
    jobs = [await queue.add(number) for number in range(12)]
    async with work(handle, concurrency=10), work(handle, concurrency=10):
        for job in jobs:
            await job.wait(timeout=20)
    assert 1 <= most <= 2


async def test_both_languages_count_and_delete_the_same_jobs(node: NodeQueue, queue: Queue) -> None:
    await node.add(1)
    await node.add(2, priority=3)
    await queue.add(3, delay=600)
    await queue.add(4)
    theirs, ours = await node.counts(), await queue.counts()
    assert (theirs["waiting"], theirs["prioritized"], theirs["delayed"]) == (2, 1, 1)
    assert (ours[State.WAITING], ours[State.DELAYED]) == (3, 1)

    await queue.admin.obliterate()
    assert sum((await node.counts()).values()) == 0
    await node.add("again")
    await node.ask("obliterate")
    assert sum((await queue.counts()).values()) == 0
