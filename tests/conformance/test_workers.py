"""Who works on a queue."""

from __future__ import annotations

from jobwire.boundary import Feature
from jobwire.observe.health import health
from jobwire.queue import Queue
from jobwire.worker import Worker


async def test_a_queue_and_a_worker_meet_at_the_same_url(url):
    async with Queue("letters", url) as queue, Worker("letters", lambda job: job.data + 1, url):
        added = await queue.add(1)
        assert await added.wait(timeout=20) == 2


async def test_a_worker_is_listed_by_name_while_it_runs(queue, work, eventually, needs):
    with needs(queue, Feature.WORKERS):

        async def names():
            return {worker.name for worker in await queue.admin.workers()}

        async def both_are_there():
            return {"anna", "bert"} <= await names()

        async def only_bert_is_there():
            there = await names()
            return "anna" not in there and "bert" in there

        async with work(lambda job: None, name="bert"):
            async with work(lambda job: None, name="anna"):
                await eventually(both_are_there)
            await eventually(only_bert_is_there)


async def test_a_job_names_the_worker_that_ran_it(queue, work, finished, needs):
    with needs(queue, Feature.WORKERS):
        await queue.admin.workers()
        added = await queue.add(1)
        async with work(lambda job: None, name="anna"):
            assert (await finished(queue, added.id)).worker == "anna"


async def test_a_worker_has_started_and_is_healthy_once_it_claims(work, eventually):
    async with work(lambda job: None) as worker:
        await eventually(lambda: worker.started)
        assert (await health(worker)).ok
    assert not worker.started


async def test_a_paused_worker_has_started_without_a_claim(queue, connection, eventually):
    worker = Worker(queue.name, lambda job: None, connection)
    await worker.pause()
    assert not worker.started
    async with worker:
        await eventually(lambda: worker.running)
        assert worker.started
