"""What a running job tells about itself."""

from __future__ import annotations

import pytest

from jobwire.boundary import Feature
from jobwire.model import State


async def test_progress_can_be_read_while_the_job_runs(queue, work, eventually, needs):
    with needs(queue, Feature.PROGRESS):
        added = await queue.add(1)

        async def seen_half_way():
            return (await queue.get(added.id)).progress == 50

        async def handler(job):
            await job.update_progress(50)
            await eventually(seen_half_way)
            await job.update_progress({"done": 3, "of": 3})

        async with work(handler) as worker:
            await eventually(lambda: worker.stats.completed + worker.stats.failed)
        job = await queue.get(added.id)
        assert (job.state, job.progress) == (State.COMPLETED, {"done": 3, "of": 3})


@pytest.mark.parametrize("value", [0, 100, 12.5, "half way", None, False, {"a": [1]}, ["é", "🚀"]])
async def test_progress_may_be_any_json_value(queue, work, finished, needs, value):
    with needs(queue, Feature.PROGRESS):

        async def handler(job):
            await job.update_progress(value)

        added = await queue.add(1)
        async with work(handler):
            job = await finished(queue, added.id)
        assert (job.state, job.progress) == (State.COMPLETED, value)


async def test_log_lines_are_kept_in_order(queue, work, finished, needs):
    with needs(queue, Feature.LOGS):

        async def handler(job):
            for line in ("first", "zweite Zeile ✓", "third\nwith two lines"):
                await job.log(line)

        added = await queue.add(1)
        async with work(handler):
            assert (await finished(queue, added.id)).state is State.COMPLETED
        assert list(await queue.logs(added.id)) == ["first", "zweite Zeile ✓", "third\nwith two lines"]
        assert list(await queue.logs(added.id, last=2)) == ["zweite Zeile ✓", "third\nwith two lines"]
        assert len(await queue.logs(added.id, last=9)) == 3


async def test_a_log_keeps_only_the_newest_lines_when_asked_to(queue, work, finished, needs):
    with needs(queue, Feature.LOGS):

        async def handler(job):
            for n in range(5):
                await job.log(f"line {n}", keep=2)

        added = await queue.add(1)
        async with work(handler):
            assert (await finished(queue, added.id)).state is State.COMPLETED
        assert list(await queue.logs(added.id)) == ["line 3", "line 4"]


async def test_a_job_that_logged_nothing_has_an_empty_log(queue, needs):
    with needs(queue, Feature.LOGS):
        added = await queue.add(1)
        assert list(await queue.logs(added.id)) == []


async def test_a_plain_function_reports_from_its_thread(queue, work, finished, needs):
    with needs(queue, Feature.PROGRESS, Feature.LOGS):

        def handler(job):
            job.update_progress(7)
            job.log("from a thread")
            return job.data + 1

        added = await queue.add(1)
        async with work(handler):
            job = await finished(queue, added.id)
        assert (job.progress, job.result) == (7, 2)
        assert list(await queue.logs(added.id)) == ["from a thread"]


async def test_progress_can_be_published_from_outside_the_handler(queue, needs):
    added = await queue.add(1)
    with needs(queue, Feature.PROGRESS):
        await queue.admin.update_progress(added.id, {"done": 1})
        assert (await queue.get(added.id)).progress == {"done": 1}


async def test_lines_can_be_logged_from_outside_the_handler(queue, needs):
    added = await queue.add(1)
    with needs(queue, Feature.LOGS):
        for line in ("one", "two", "three"):
            await queue.admin.log(added.id, line, keep=2)
        assert list(await queue.logs(added.id)) == ["two", "three"]
