"""Texts that are commands or patterns in some store are plain texts to jobwire, wherever a caller may give one: each is
refused before anything is written, or stored as it is. A queue beside them stays as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from jobwire import Connection, Queue, State, Unique
from jobwire.boundary import Feature
from jobwire.errors import InvalidOption, JobNotFound

TEXTS = (
    "'; DROP SCHEMA pgboss CASCADE; --",
    '"; DELETE FROM job; --',
    "' OR '1'='1",
    "%s %(name)s {0} {schema} %",
    "$$; SELECT pg_sleep(60); $$",
    "*",
    "by[a-z]*er",
    "bystander",
    "bystander:1",
    "..",
    "\r\nFLUSHALL\r\n",
    "]] redis.call('FLUSHALL') --[[",
    '{"$gt": ""}',
    "$where",
    "a.b.$c",
    "\\",
    "__proto__",
    "ÿ🚀 \u202e",
)


@pytest.fixture
async def bystander(connection: Connection) -> AsyncIterator[Queue]:
    """A queue with a waiting job, which must be all that is in it in the end."""
    async with Queue("bystander", connection) as queue:
        kept = await queue.add({"keep": "me"})
        yield queue
        assert [(job.id, job.data) for job in await queue.jobs(State.WAITING)] == [(kept.id, {"keep": "me"})]
        assert sum((await queue.counts()).values()) == 1


@pytest.mark.parametrize("text", [text for text in TEXTS if text != "bystander"])
async def test_a_queue_name_is_refused_or_just_a_name(connection: Connection, bystander: Queue, text: str) -> None:
    try:
        async with Queue(text, connection) as queue:
            job = await queue.add({"n": 1})
            assert [one.id for one in await queue.jobs(State.WAITING)] == [job.id]
            assert sum((await queue.counts()).values()) == 1
            await queue.admin.drain()
            assert sum((await queue.counts()).values()) == 0
            await queue.admin.obliterate()
    except InvalidOption:
        assert text not in await connection.queues()


async def test_texts_of_a_job_are_stored_as_they_are(queue: Queue, bystander: Queue) -> None:
    can = queue.capabilities
    for text in TEXTS:
        options: list[dict[str, Any]] = [{}]
        options += [{"name": text}] if can.has(Feature.JOB_NAMES) else []
        options += [{"id": text}] if can.ids == "any" else []
        options += [{"unique": Unique(text)}] if can.has(Feature.UNIQUE) else []
        for given in options:
            try:
                job = await queue.add({"text": text, text: [text]}, **given)
            except InvalidOption as refused:
                assert refused.field.partition(".")[0] in given  # noqa: PT017 the data itself is never refused
                continue
            stored = await queue.get(job.id)
            assert stored is not None
            assert stored.data == {"text": text, text: [text]}
            assert all(getattr(stored, name) == text for name in given if name in ("id", "name"))


async def test_an_id_of_no_job_finds_and_removes_nothing(queue: Queue, bystander: Queue) -> None:
    job = await queue.add(1)
    for text in TEXTS:
        for act in (queue.get, queue.admin.remove, queue.admin.promote):
            try:
                assert await act(text) is None
                assert act == queue.get
            except (JobNotFound, InvalidOption):
                pass
    assert [one.id for one in await queue.jobs(State.WAITING)] == [job.id]


async def test_errors_logs_and_progress_are_stored_as_they_are(
    queue: Queue, bystander: Queue, work: Callable[..., Any], finished: Callable[..., Any]
) -> None:
    logs, progress = (queue.capabilities.has(one) for one in (Feature.LOGS, Feature.PROGRESS))

    seen: dict[str, Any] = {}

    async def handle(job: Any) -> None:
        if logs:
            await job.log(job.data)
        if progress:
            await job.update_progress({job.data: job.data})
            there = await queue.get(job.id)
            assert there is not None
            seen[job.data] = there.progress
        raise ValueError(job.data)

    jobs = {text: await queue.add(text) for text in TEXTS}
    async with work(handle, concurrency=5):
        for text, job in jobs.items():
            stored = await finished(queue, job.id)
            assert text in stored.error
            assert not logs or list(await queue.logs(job.id)) == [text]
            assert not progress or seen[text] == {text: text}


async def test_a_key_of_a_schedule_is_refused_or_just_a_key(
    queue: Queue, bystander: Queue, needs: Callable[..., Any]
) -> None:
    with needs(queue, Feature.SCHEDULES, Feature.SCHEDULE_CRON):
        for text in TEXTS:
            try:
                await queue.schedule(text, cron="0 3 * * *")
            except InvalidOption:
                continue
            assert [one.key for one in await queue.schedules()] == [text]
            assert await queue.unschedule(text)
            assert not await queue.schedules()


async def test_text_that_is_no_cron_expression_is_refused(
    queue: Queue, bystander: Queue, needs: Callable[..., Any]
) -> None:
    with needs(queue, Feature.SCHEDULES, Feature.SCHEDULE_CRON):
        for text in set(TEXTS) - {"*"}:  # which is a cron expression
            with pytest.raises(InvalidOption):
                await queue.schedule("nightly", cron=text)
        assert not await queue.schedules()
