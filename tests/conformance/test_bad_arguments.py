"""What no store could be asked is refused above all of them, and nothing is asked."""

from __future__ import annotations

import asyncio
import inspect
from datetime import timedelta
from enum import IntEnum

import pytest

from jobwire import Rate, native
from jobwire.boundary import Feature
from jobwire.errors import InvalidOption, NotSupported, PayloadTooLarge, WaitTimeout
from jobwire.options import DEFAULT_SIZE_LIMIT, NewJob
from jobwire.queue import Queue
from jobwire.queue_admin import QueueAdmin
from jobwire.worker import Worker

BY_ID = [
    name
    for half in (QueueAdmin, Queue)
    for name, member in vars(half).items()
    if not name.startswith("_") and callable(member) and "job_id" in inspect.signature(member).parameters
]
MORE = {
    "update_data": ({"n": 1},),
    "change_priority": (1,),
    "change_delay": (1.0,),
    "update_progress": (50,),
    "log": ("x",),
}


class Level(IntEnum):
    LOW = 1
    HIGH = 2


BAD_IDS = {"a number": 7, "none": None, "bytes": b"7", "empty": "", "a surrogate": "a\ud800", "a query": {"$ne": None}}


def test_every_operation_on_one_job_is_tried():
    assert {"get", "logs", "wait", "retry", "promote", "cancel", "remove", "children", "clear_logs"} < set(BY_ID)


@pytest.mark.parametrize("bad", BAD_IDS.values(), ids=BAD_IDS.keys())
async def test_an_id_that_is_no_text_is_refused_on_every_entrance(queue, bad):
    kept = await queue.add("stays", delay=3600)
    for name in BY_ID:
        with pytest.raises((InvalidOption, NotSupported)) as refusal:
            await getattr(queue.admin if hasattr(QueueAdmin, name) else queue, name)(bad, *MORE.get(name, ()))
        if isinstance(refusal.value, InvalidOption):
            assert (name, refusal.value.field) == (name, "job_id")
    assert (await queue.get(kept.id)).state == "delayed"


@pytest.mark.parametrize("bad", [5, b"x", "", "a\ud800", {"$gt": ""}], ids=str)
async def test_a_cursor_that_is_no_text_is_refused(queue, bad):
    with pytest.raises(InvalidOption, match="cursor"):
        await queue.jobs(cursor=bad)
    with pytest.raises(InvalidOption, match="since"):
        await anext(queue.events(bad))


@pytest.mark.parametrize("bad", [5, None, b"x", "", "a\ud800", {"$gt": ""}], ids=str)
async def test_a_key_that_is_no_text_is_refused(queue, bad):
    for call in (queue.admin.unique_owner, queue.admin.release_unique, queue.unschedule):
        with pytest.raises((InvalidOption, NotSupported)):
            await call(bad)


async def test_durations_of_both_kinds_are_taken_and_others_refused(queue):
    job = await queue.add(1, delay=timedelta(hours=1))
    with pytest.raises(WaitTimeout, match=r"within 0\.02 s"):
        await job.wait(timedelta(milliseconds=20))
    with pytest.raises(WaitTimeout):
        await queue.wait(job.id, 0)
    for bad in ("5", -1, float("nan"), True):
        with pytest.raises(InvalidOption, match="timeout"):
            await job.wait(bad)
        with pytest.raises(InvalidOption, match="older_than"):
            await queue.admin.clean("failed", older_than=bad)


@pytest.mark.parametrize("option", ["attempt", "jobId", "removeOnComplete"])
async def test_an_unknown_option_adds_nothing(queue, option):
    with pytest.raises(InvalidOption, match="did you mean"):
        await queue.add(1, **{option: 3})
    with pytest.raises(InvalidOption, match="did you mean"):
        await queue.add_many([NewJob(1), NewJob(2, **{option: 3})])
    with pytest.raises(InvalidOption, match="did you mean"):
        await queue.schedule("daily", cron="0 9 * * *", **{option: 3})
    assert sum((await queue.counts()).values()) == 0


async def test_what_is_not_a_job_adds_nothing(queue):
    with pytest.raises(InvalidOption, match=r"jobs\[1\]: must be a NewJob"):
        await queue.add_many([NewJob(1), {"n": 2}])
    with pytest.raises(InvalidOption, match=r"job: must be a NewJob"):
        await queue.add_job({"n": 2})
    for option in ("unique", "parent", "target"):
        with pytest.raises(InvalidOption, match=option):
            await queue.add(1, **{option: "k"})
    assert sum((await queue.counts()).values()) == 0


async def test_a_job_of_a_class_of_the_callers_is_a_job(queue):
    class Letter(NewJob):
        pass

    assert (await queue.add_job(Letter(1))).data == 1
    assert [job.data for job in await queue.add_many([Letter(2), NewJob(3)])] == [2, 3]


async def test_numbers_of_an_enum_are_numbers(queue):
    options = {"delay": Level.HIGH}
    if queue.capabilities.has(Feature.PRIORITIES):
        options["priority"] = Level.HIGH
    [job, other] = await asyncio.gather(queue.add(Level.HIGH, **options), queue.add("beside it", delay=3600))
    assert [(await queue.get(one.id)).data for one in (job, other)] == [2, "beside it"]
    assert len(await queue.jobs("delayed", skip=Level.LOW)) == 1
    if queue.capabilities.has(Feature.LOGS):
        await queue.admin.log(job.id, "a line", keep=Level.LOW)
        assert await queue.logs(job.id) == ["a line"]


async def test_what_is_not_a_list_of_names_or_numbers_is_refused(queue, connection):
    calls = {
        "priorities": (Feature.BULK, queue.admin.counts_by_priority),
        "fields": (Feature.EVENT_CONTROL, lambda bad: queue.admin.publish("mine", bad)),
        "queues": (Feature.QUEUES, lambda bad: connection.figures(bad, most=10)),
    }
    for field, (feature, call) in calls.items():
        with pytest.raises((InvalidOption, NotSupported)) as refusal:
            await call(5)
        named = isinstance(refusal.value, InvalidOption) and refusal.value.field == field
        assert named or not queue.capabilities.has(feature)


async def test_native_options_of_another_protocol_are_refused_when_the_worker_is_made(connection):
    fitting = 0
    for kind in (native.BullMQWorker, native.BridgeMQWorker, native.MonqueWorker, native.PgBossWorker):
        try:
            Worker("letters", print, connection, native=kind())
            fitting += 1
        except InvalidOption as refused:
            assert refused.field == "native"  # noqa: PT017 either outcome is right, once
    assert fitting == (0 if connection.address.protocol == "memory" else 1)
    with pytest.raises(InvalidOption, match="native"):
        Worker("letters", print, connection, native=object())


async def test_what_a_consumer_would_refuse_is_refused_when_the_worker_is_made(connection):
    can = connection.backend.capabilities
    if not can.has(Feature.RATE_LIMIT):
        with pytest.raises(NotSupported):
            Worker("letters", print, connection, rate=Rate(1, per=1))
    for options in ({"backoff": lambda failures, job, error: 1.0}, {"keep_completed": 5}):
        try:
            settings = Worker("letters", print, connection, **options)._plans["letters"].settings
        except NotSupported:
            continue
        await connection.backend.consumer(settings).close()


async def test_new_data_obeys_the_limit_of_the_queue(connection, needs):
    async with Queue("letters", connection, size_limit=100) as queue:
        job = await queue.add("small")
        with needs(queue, Feature.EDITS):
            await queue.admin.update_data(job.id, "x" * 90)
            with pytest.raises(PayloadTooLarge, match="102 bytes exceeds limit of 100 bytes"):
                await queue.admin.update_data(job.id, "x" * 100)
            assert (await queue.get(job.id)).data == "x" * 90


async def test_new_data_from_a_handler_obeys_the_limit_too(queue, work, finished, needs):
    async def grow(job):
        await job.update_data("x" * DEFAULT_SIZE_LIMIT)

    with needs(queue, Feature.EDITS):
        queue.capabilities.require(Feature.EDITS)
        added = await queue.add("small")
        async with work(grow):
            job = await finished(queue, added.id)
        assert "exceeds limit of 10,485,760 bytes" in job.error
        assert job.data == "small"
