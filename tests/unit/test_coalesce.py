"""Group commit: what is put goes out together, in order, and closing waits for it."""

from __future__ import annotations

import asyncio

import pytest

from jobwire.coalesce import Coalescer
from jobwire.errors import Closed, InvalidOption


class Sender:
    """Sends when it is let; remembers the batches."""

    def __init__(self):
        self.gate = asyncio.Event()
        self.batches: list[list[int]] = []

    async def __call__(self, items):
        await self.gate.wait()
        self.batches.append(list(items))
        return [item * 10 for item in items]


@pytest.mark.parametrize("count", [1, 5])
async def test_closing_waits_for_what_was_put(count):
    sender = Sender()
    coalescer = Coalescer(sender, 2)
    puts = [asyncio.create_task(coalescer.put(item)) for item in range(count)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(coalescer.close())
    done, _ = await asyncio.wait([closing], timeout=0.05)
    assert not done, "closed while a call was under way"
    sender.gate.set()
    await closing
    assert [item for batch in sender.batches for item in batch] == list(range(count))
    assert await asyncio.gather(*puts) == [item * 10 for item in range(count)]


async def test_two_may_close_at_once_and_closing_an_idle_one_returns():
    sender = Sender()
    coalescer = Coalescer(sender, 2)
    put = asyncio.create_task(coalescer.put(1))
    await asyncio.sleep(0)
    closings = [asyncio.create_task(coalescer.close()) for _ in range(2)]
    await asyncio.sleep(0)
    sender.gate.set()
    await asyncio.gather(*closings)
    await coalescer.close()
    assert await put == 10


async def test_an_item_that_is_refused_fails_alone_and_the_others_are_sent_once():
    class Picky(Sender):
        async def __call__(self, items):
            await self.gate.wait()
            if 3 in items:  # before anything is sent, as InvalidOption promises
                raise InvalidOption("number", 3, "must not be 3")
            return await super().__call__(items)

    sender = Picky()
    coalescer = Coalescer(sender, 10)
    puts = [asyncio.create_task(coalescer.put(item)) for item in range(6)]
    await asyncio.sleep(0)
    sender.gate.set()
    answers = await asyncio.gather(*puts, return_exceptions=True)
    assert [type(answer) for answer in answers] == [int, int, int, InvalidOption, int, int]
    assert [item for batch in sender.batches for item in batch] == [0, 1, 2, 4, 5]


async def test_a_put_after_the_close_is_refused():
    coalescer = Coalescer(Sender(), 2)
    await coalescer.close()
    with pytest.raises(Closed, match="has been closed"):
        await coalescer.put(1)


async def test_closing_ends_although_the_last_call_failed():
    async def fail(items):
        await asyncio.sleep(0)
        raise ConnectionError("gone")

    coalescer = Coalescer(fail, 2)
    puts = [asyncio.create_task(coalescer.put(item)) for item in range(3)]
    await asyncio.sleep(0)
    await asyncio.wait_for(coalescer.close(), 5)
    assert [type(error) for error in await asyncio.gather(*puts, return_exceptions=True)] == [ConnectionError] * 3


async def test_as_many_calls_are_under_way_as_allowed_and_closing_waits_for_all_of_them():
    class Counting(Sender):
        def __init__(self):
            super().__init__()
            self.begun: list[list[int]] = []

        async def __call__(self, items):
            self.begun.append(list(items))
            return await super().__call__(items)

    sender = Counting()
    coalescer = Coalescer(sender, 4, together=True, calls=3)
    puts = [asyncio.create_task(coalescer.put(item)) for item in range(6)]
    for _ in range(10):
        await asyncio.sleep(0)
    puts += [asyncio.create_task(coalescer.put(item)) for item in range(6, 18)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert [len(batch) for batch in sender.begun] == [4, 2, 4]
    closing = asyncio.create_task(coalescer.close())
    done, _ = await asyncio.wait([closing], timeout=0.05)
    assert not done, "closed while calls were under way"
    sender.gate.set()
    await closing
    assert await asyncio.gather(*puts) == [item * 10 for item in range(18)]
    assert [item for batch in sender.begun for item in batch] == [*range(18)]


async def test_items_of_one_turn_of_the_loop_go_together_if_asked_for():
    sender = Sender()
    sender.gate.set()
    coalescer = Coalescer(sender, 4, together=True)
    assert await asyncio.gather(*(coalescer.put(item) for item in range(6))) == [0, 10, 20, 30, 40, 50]
    assert [len(batch) for batch in sender.batches] == [4, 2]
    await asyncio.wait_for(coalescer.close(), 5)
