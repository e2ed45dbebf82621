"""The slots that the queues of a worker share: who gets a free one."""

from __future__ import annotations

import asyncio

import pytest

from jobwire.worker import slots
from jobwire.worker.slots import Share, Slots


class Queue:
    """Stands for the engine of a queue: uses what it takes until it is freed."""

    share: Share

    def __init__(self) -> None:
        self.slots_used = 0
        self.rung = 0
        self.gone = 0

    def slots_freed(self) -> None:
        self.rung += 1

    def slots_gone(self) -> None:
        self.gone += 1

    def take(self, wanted: int, *, asks_on: bool = True) -> int:
        taken = self.share.take(wanted, asks_on=asks_on)
        self.slots_used += taken
        return taken

    def free(self, number: int = 1) -> None:
        self.slots_used -= number
        self.share.freed()


def queues(total: int, *limits: int) -> list[Queue]:
    """Queues of one worker that have asked for nothing yet."""
    shared = Slots(total)
    made = [Queue() for _ in limits]
    for queue, limit in zip(made, limits, strict=True):
        queue.share = shared.share(queue, limit, asks=False)
    return made


def test_a_single_queue_gets_all_that_its_limit_allows() -> None:
    [only] = queues(10, 10)
    assert (only.take(6), only.take(6), only.take(6)) == (6, 4, 0)


async def test_a_queue_alone_with_work_gets_all_slots() -> None:
    one, other = queues(10, 10, 10)
    assert one.take(10) == 10
    assert other.take(1) == 0


async def test_freed_slots_go_to_the_queue_that_uses_the_fewest() -> None:
    one, other = queues(10, 10, 10)
    one.take(10)
    other.take(10)
    one.free(5)
    assert other.rung == 1
    assert (one.take(10), other.take(10)) == (0, 5)
    one.free(2)
    other.free(2)
    assert (one.take(10), other.take(10)) == (2, 2)


async def test_with_one_slot_the_queues_take_turns() -> None:
    one, two, three = queues(1, 1, 1, 1)
    order: list[int] = []
    one.take(1)
    for _ in range(7):
        [busy] = [queue for queue in (one, two, three) if queue.slots_used]
        order.append((one, two, three).index(busy))
        for queue in (one, two, three):
            queue.take(1)
        busy.free()
        for queue in (busy, one, two, three):
            queue.take(1)
    assert order == [0, 1, 2, 0, 1, 2, 0]


async def test_a_queue_that_withdraws_leaves_its_part_to_the_others() -> None:
    one, other = queues(4, 4, 4)
    one.take(4)
    other.take(4)
    one.free(2)
    assert one.take(4) == 0
    other.share.withdraw()
    assert one.rung == 1
    assert one.take(4) == 2


async def test_a_queue_that_asks_by_the_way_is_not_waited_for() -> None:
    one, other = queues(2, 2, 2)
    one.take(2)
    assert other.take(2, asks_on=False) == 0
    one.free()
    assert one.take(1) == 1


async def test_a_limit_of_its_own_is_not_counted_as_a_wish_for_more() -> None:
    one, other = queues(6, 6, 2)
    one.take(6)
    other.take(6)
    one.free(6)
    assert (one.take(6), other.take(6)) == (4, 2)
    assert not other.share.has_free
    assert not other.share.may_wait


async def test_waits_are_ended_once_no_slot_was_free_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_FULL_FOR", 0.001)
    one, other = queues(1, 1, 1)
    one.take(1)
    assert other.share.may_wait
    async with asyncio.timeout(10):
        while not other.gone:
            await asyncio.sleep(0.001)
    assert not other.share.may_wait
    one.free()
    assert other.share.may_wait
