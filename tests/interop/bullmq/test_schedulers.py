"""A repeating job lives only as long as the workers that pick it up make its next one."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

from awaiting import eventually
from jobwire import ActiveJob, Queue, Worker

from ..peer import NodeQueue

pytestmark = pytest.mark.slow


def _misplaced(moments: list[int], period: int) -> list[int]:
    """Gaps between ticks that no schedule makes. A late worker may skip slots, so a gap is any number of periods."""
    gaps = [later - sooner for sooner, later in itertools.pairwise(moments)]
    return [gap for gap in gaps if gap <= 0 or gap % period]


@pytest.mark.parametrize(
    ("repeat", "period", "ticks"),
    [
        ({"every": 250}, 250, 6),
        ({"pattern": "* * * * * *"}, 1000, 4),
        ({"pattern": "*/2 * * * * *", "tz": "Asia/Kolkata"}, 2000, 3),
    ],
    ids=["every 250 ms", "cron each second", "cron with a zone"],
)
async def test_a_node_scheduler_is_kept_alive_by_jobwire_workers_alone(
    node: NodeQueue, work: Callable[..., Worker], repeat: dict[str, Any], period: int, ticks: int
) -> None:
    ids: list[str] = []
    seen: list[tuple[str, Any]] = []

    async def handle(job: ActiveJob) -> None:
        ids.append(job.id)
        seen.append((job.name, job.data))

    await node.ask("schedule", key="clock", repeat=repeat, template={"name": "tick", "data": {"t": 1}})

    async def enough() -> bool:
        return len(ids) >= ticks

    async with work(handle):
        await eventually(enough, within=30)
        [scheduler] = await node.ask("schedulers")

    moments = [int(job_id.rpartition(":")[2]) for job_id in ids]
    assert all(job_id.startswith("repeat:clock:") for job_id in ids)
    assert _misplaced(moments, period) == []
    assert seen == [("tick", {"t": 1})] * len(ids)
    assert scheduler["next"] >= moments[-1]
    assert scheduler["iterationCount"] >= ticks


@pytest.mark.parametrize(
    ("repeat", "period", "ticks"),
    [({"every": 0.25}, 250, 6), ({"cron": "* * * * * *"}, 1000, 4)],
    ids=["every 250 ms", "cron each second"],
)
async def test_a_jobwire_schedule_is_kept_alive_by_node_workers_alone(
    node: NodeQueue, queue: Queue, repeat: dict[str, Any], period: int, ticks: int
) -> None:
    await queue.schedule("clock", name="tick", data={"t": 1}, **repeat)
    async with node.work("echo") as worker:

        async def enough() -> list[str] | None:
            ids = await worker.runs()
            return ids if len(ids) >= ticks else None

        ids = await eventually(enough, within=30)
        [schedule] = await queue.schedules()

    moments = [int(job_id.rpartition(":")[2]) for job_id in ids]
    assert _misplaced(moments, period) == []
    job = await node.get(ids[0])
    assert (job.name, job.returnvalue["data"]) == ("tick", {"t": 1})
    assert schedule.key == "clock"
    assert schedule.runs >= ticks


async def test_a_mixed_fleet_makes_each_tick_once(node: NodeQueue, queue: Queue, work: Callable[..., Worker]) -> None:
    ours: list[str] = []

    async def handle(job: ActiveJob) -> None:
        ours.append(job.id)

    await node.ask("schedule", key="clock", repeat={"every": 100}, template={"name": "tick"})
    async with work(handle, concurrency=2), work(handle), node.work("echo") as one, node.work("echo") as other:

        async def enough() -> list[str] | None:
            ids = [*ours, *await one.runs(), *await other.runs()]
            return ids if len(ids) >= 15 else None

        ids = await eventually(enough)
        await node.ask("unschedule", key="clock")
    moments = sorted(int(job_id.rpartition(":")[2]) for job_id in ids)
    assert _misplaced(moments, 100) == []


async def test_what_one_language_schedules_the_other_lists_and_stops(node: NodeQueue, queue: Queue) -> None:
    await node.ask(
        "schedule", key="theirs", repeat={"pattern": "0 3 * * *", "tz": "Europe/Athens"}, template={"name": "a"}
    )
    await queue.schedule("ours", every=3600, name="b", data=[1])

    by_key = {one.key: one for one in await queue.schedules()}
    assert (by_key["theirs"].cron, by_key["theirs"].tz, by_key["theirs"].name) == ("0 3 * * *", "Europe/Athens", "a")
    assert by_key["theirs"].next_run.timestamp() > time.time()
    seen = {one["key"]: one for one in await node.ask("schedulers")}
    assert (int(seen["ours"]["every"]), seen["ours"]["name"], seen["ours"]["template"]["data"]) == (3_600_000, "b", [1])

    assert await queue.unschedule("theirs")
    assert await node.ask("unschedule", key="ours")
    assert (await node.ask("schedulers"), list(await queue.schedules())) == ([], [])
