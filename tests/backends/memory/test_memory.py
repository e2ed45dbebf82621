"""What is the memory store's own: names, closing, its clock, wake-ups between threads."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from jobwire import AddStatus, codec
from jobwire.backends.memory import open_backend
from jobwire.backends.memory.backend import MemoryBackend
from jobwire.backends.memory.store.event_log import KEPT_EVENTS
from jobwire.backends.memory.store.store import Store
from jobwire.backoff import Backoff
from jobwire.boundary import Completed, ConsumerSettings, Failed, PreparedJob
from jobwire.connection import connect
from jobwire.errors import InvalidOption, StoreUnavailable
from jobwire.model import State
from jobwire.native import BullMQWorker
from jobwire.options import Keep, NewJob, NewSchedule, Unique
from jobwire.queue import Queue
from jobwire.urls import parse


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def backend(clock):
    return MemoryBackend(store=Store(clock))


def prepared(data, **options):
    return PreparedJob(NewJob(data, **options), "letters", codec.dumps(data))


def consumer_of(backend, **settings):
    return backend.consumer(ConsumerSettings(queue="letters", worker_id="worker-1", **settings))


@pytest.mark.parametrize("name", ["", "orders"])
async def test_a_store_is_shared_while_one_connection_is_open(name):
    async with connect(f"memory:{name}") as first:
        async with Queue("letters", first) as queue:
            await queue.add(1)
        async with connect(f"memory:{name}") as second, Queue("letters", second) as queue:
            assert (await queue.counts())[State.WAITING] == 1
        async with Queue("letters", first) as queue:
            assert (await queue.counts())[State.WAITING] == 1
        async with Queue("letters", f"memory:not-{name}") as queue:
            assert (await queue.counts())[State.WAITING] == 0
    async with Queue("letters", f"memory:{name}") as queue:
        assert (await queue.counts())[State.WAITING] == 0


async def test_opening_twice_takes_the_store_once(unique):
    backend = open_backend(parse(f"memory:{unique}"))
    await backend.open()
    await backend.open()
    await backend.add("letters", [prepared(1)])
    await backend.close()
    await backend.close()
    await backend.open()
    assert (await backend.counts("letters"))[State.WAITING] == 0
    await backend.close()


async def test_a_closed_backend_refuses_to_work(backend):
    await backend.open()
    await backend.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await backend.counts("letters")


async def test_a_twin_outlives_the_backend_it_was_made_from(backend):
    twin = backend.twin()
    await backend.add("letters", [prepared(1)])
    await backend.close()
    assert (await twin.counts("letters"))[State.WAITING] == 1
    await twin.close()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"id": "17"}, "id"),
        ({"priority": -1}, "priority"),
        ({"priority": 2**21}, "priority"),
        ({"extra": {"colour": "red"}}, "extra.colour"),
    ],
    ids=str,
)
def test_what_a_real_store_refuses_is_refused(backend, options, field):
    with pytest.raises(InvalidOption) as refusal:
        backend.check("letters", NewJob(None, **options))
    assert refusal.value.field == field


def test_a_worker_with_native_options_is_refused(backend):
    with pytest.raises(InvalidOption, match="native"):
        consumer_of(backend, native=BullMQWorker(metrics=60))


async def test_a_delayed_job_comes_due_by_the_stores_clock(backend, clock):
    await backend.add("letters", [prepared(1, delay=60)])
    consumer = consumer_of(backend)
    settled = await consumer.settle([], claim=1)
    assert (list(settled.claims), settled.next_in) == ([], 60.0)
    clock.now += 59.999
    assert list((await consumer.settle([], claim=1)).claims) == []
    clock.now += 0.002
    assert len((await consumer.settle([], claim=1)).claims) == 1


async def test_a_lease_ends_by_the_stores_clock(backend, clock):
    [added] = await backend.add("letters", [prepared(1)])
    consumer = consumer_of(backend, lease=30)
    [claim] = (await consumer.settle([], claim=1)).claims
    [duty] = consumer.duties()
    clock.now += 20
    assert list(await consumer.extend([claim])) == []
    clock.now += 20
    assert list((await duty.run()).recovered) == []
    clock.now += 11
    assert list(await consumer.extend([claim])) == [claim]
    assert list((await duty.run()).recovered) == [added.id]


async def test_a_job_whose_lease_ran_out_unnoticed_can_be_removed(backend, clock):
    [added] = await backend.add("letters", [prepared(1)])
    await consumer_of(backend, lease=30).settle([], claim=1)
    assert [acted.value for acted in await backend.remove("letters", [added.id])] == ["locked"]
    clock.now += 31
    assert [acted.value for acted in await backend.remove("letters", [added.id])] == ["done"]


async def test_missed_turns_of_a_schedule_are_skipped(backend, clock):
    await backend.schedules.schedule("letters", NewSchedule("pulse", NewJob(1), every=60), prepared(1))
    consumer = consumer_of(backend)
    began = clock.now
    [claim] = (await consumer.settle([], claim=5)).claims
    clock.now += 1000
    [late] = (await consumer.settle([Completed(claim, b"null")], claim=5)).claims
    [schedule] = await backend.schedules.schedules("letters")
    assert schedule.next_run.timestamp() == began + 17 * 60
    assert (late.job.run_at.timestamp(), schedule.runs) == (began + 60, 3)


async def test_a_schedule_ends_with_its_window(backend, clock):
    end = datetime.fromtimestamp(clock.now + 90, UTC)
    new = NewSchedule("pulse", NewJob(1), every=60, end_at=end)
    await backend.schedules.schedule("letters", new, prepared(1))
    consumer = consumer_of(backend)
    runs = 0
    for _ in range(5):
        runs += len((await consumer.settle([], claim=5)).claims)
        clock.now += 60
    assert runs == 2
    with pytest.raises(InvalidOption, match="end_at"):
        await backend.schedules.schedule("letters", new, prepared(1))


async def test_replacing_a_schedule_leaves_one_job_ahead(backend):
    for data in ("old", "new"):
        await backend.schedules.schedule("letters", NewSchedule("pulse", NewJob(data), every=60), prepared(data))
    assert (await backend.counts("letters"))[State.WAITING] == 1
    [claim] = (await consumer_of(backend).settle([], claim=5)).claims
    assert claim.job.data == "new"


async def test_the_ahead_job_of_a_schedule_can_not_be_removed(backend):
    await backend.schedules.schedule("letters", NewSchedule("pulse", NewJob(1), every=60), prepared(1))
    [job] = await backend.jobs("letters", State.WAITING, 10, None)
    assert [acted.value for acted in await backend.remove("letters", [job.id])] == ["wrong state"]
    assert [acted.value for acted in await backend.cancels.cancel("letters", [job.id])] == ["wrong state"]


async def test_jobs_are_kept_by_age_on_the_stores_clock(backend, clock):
    consumer = consumer_of(backend, keep_completed=Keep(age=100))
    for wait in (60, 60, 0):
        await backend.add("letters", [prepared(1)])
        [claim] = (await consumer.settle([], claim=1)).claims
        await consumer.settle([Completed(claim, b"null")], claim=0)
        clock.now += wait
    assert (await backend.counts("letters"))[State.COMPLETED] == 2


async def test_a_unique_key_is_held_as_long_as_its_ttl(backend, clock):
    job = prepared(1, unique=Unique("report", ttl=60))
    [first] = await backend.add("letters", [job])
    clock.now += 59
    assert [(one.id, one.status) for one in await backend.add("letters", [job])] == [(first.id, AddStatus.DUPLICATE)]
    clock.now += 1
    [third] = await backend.add("letters", [job])
    assert third.status is AddStatus.ADDED


async def test_the_event_log_is_bounded(backend):
    since = await backend.events.cursor("letters")
    for _ in range(KEPT_EVENTS // 100):
        await backend.add("letters", [prepared(1) for _ in range(100)])
    events = backend.events.events("letters", since)
    first = await anext(events)
    await events.aclose()
    last = await backend.events.cursor("letters")
    assert int(last) - int(first.id) >= KEPT_EVENTS - 1
    assert int(first.id) > 1


async def test_a_cursor_taken_before_the_queue_was_obliterated_still_works(backend):
    await backend.add("letters", [prepared(1)])
    since = await backend.events.cursor("letters")
    await backend.obliterate("letters", force=False)
    [added] = await backend.add("letters", [prepared(2)])
    events = backend.events.events("letters", since)
    event = await anext(events)
    await events.aclose()
    assert (event.native_type, event.job_id) == ("added", added.id)


async def test_a_bad_cursor_is_refused(backend):
    with pytest.raises(InvalidOption, match="since"):
        await anext(backend.events.events("letters", "yesterday"))
    for cursor in ("not a cursor", '{"a":1}', "17", '["x"]'):
        with pytest.raises(InvalidOption, match="cursor"):
            await backend.jobs("letters", State.WAITING, 10, cursor)


async def test_a_worker_in_one_thread_is_woken_by_an_add_in_another():
    backend = MemoryBackend(store=Store())
    waiting = threading.Event()
    woken = []

    async def work():
        twin = backend.twin()
        consumer = consumer_of(twin)
        asyncio.get_running_loop().call_later(0.05, waiting.set)
        await consumer.wait(20)
        woken.extend(claim.job.data for claim in (await consumer.settle([], claim=1)).claims)
        await consumer.close()

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    await asyncio.to_thread(waiting.wait, 20)
    await backend.add("letters", [prepared("hello")])
    await asyncio.to_thread(thread.join, 20)
    assert woken == ["hello"]


async def test_a_sleeper_whose_event_loop_has_ended_wakes_nobody_and_breaks_nothing():
    backend = MemoryBackend(store=Store())

    async def fall_asleep_and_leave():
        store = backend._access.store()
        with store.lock:
            store.queue("letters").work.register()

    await asyncio.to_thread(lambda: asyncio.run(fall_asleep_and_leave()))
    await backend.add("letters", [prepared(1)])
    assert (await backend.counts("letters"))[State.WAITING] == 1


async def test_a_worker_is_listed_until_its_last_consumer_closes(backend):
    first, second = consumer_of(backend, name="anna"), consumer_of(backend, name="anna")
    await first.settle([], claim=1)
    await second.settle([], claim=1)
    await second.close()
    assert [worker.name for worker in await backend.workers.workers("letters")] == ["anna"]
    await first.close()
    await first.close()
    assert list(await backend.workers.workers("letters")) == []


async def test_a_strategy_may_use_the_store(backend):
    asked = []

    def strategy(failures, job, error):
        with backend._access.store().lock:  # would hang if the store were locked now
            asked.append((failures, error))
        return 5.0

    await backend.add("letters", [prepared(1, attempts=2, backoff=Backoff.custom("mine"))])
    consumer = consumer_of(backend, strategy=strategy)
    [claim] = (await consumer.settle([], claim=1)).claims
    settled = await consumer.settle([Failed(claim, "busy")], claim=1)
    assert (asked, settled.next_in) == ([(1, "busy")], 5.0)


async def test_workers_in_several_threads_never_claim_the_same_job():
    backend = MemoryBackend(store=Store())
    await backend.add("letters", [prepared(n) for n in range(1000)])

    async def take_all():
        consumer, taken = consumer_of(backend.twin()), []
        while claims := (await consumer.settle([], claim=3)).claims:
            taken += [claim.job.data for claim in claims]
        return taken

    taken = await asyncio.gather(*(asyncio.to_thread(lambda: asyncio.run(take_all())) for _ in range(4)))
    assert sorted(data for each in taken for data in each) == list(range(1000))
