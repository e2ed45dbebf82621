"""On a cluster all keys of a namespace share a slot, by a hash tag in its name."""

from __future__ import annotations

import uuid

import pytest

from jobwire import NewJob, Queue, Target, Worker, connect
from jobwire.errors import InvalidOption, StoreRefused
from jobwire.model import State
from jobwire.native import BridgeMQWorker


async def test_a_namespace_with_a_tag_works_on_a_cluster(jobwire_valkey_cluster):
    url = f"bridgemq+cluster://{jobwire_valkey_cluster.hosts}?namespace={{test-{uuid.uuid4().hex[:8]}}}"
    async with (
        Queue("mail", url) as queue,
        Worker("mail", lambda job: job.data + 1, url, native=BridgeMQWorker(stack="py")),
    ):
        added = await queue.add_many([NewJob(1), NewJob(2, target=Target(stack=("py",))), NewJob(3, delay=0.1)])
        assert [await job.wait(timeout=20) for job in added] == [2, 3, 4]
        await queue.schedule("daily", cron="0 9 * * *")
        assert [schedule.key for schedule in await queue.schedules()] == ["daily"]
        assert (await queue.counts())[State.COMPLETED] == 3
        assert len(await queue.admin.workers()) == 1
        await queue.admin.obliterate()


def test_one_without_is_refused_with_the_remedy(jobwire_valkey_cluster):
    with pytest.raises(InvalidOption, match=r"namespace.*\{bridge\}"):
        connect(f"bridgemq+cluster://{jobwire_valkey_cluster.hosts}")


async def test_a_clusters_node_is_not_mistaken_for_a_server(jobwire_valkey_cluster):
    connection = connect(f"bridgemq+{jobwire_valkey_cluster.urls[0]}")
    with pytest.raises(StoreRefused, match=r"bridgemq\+cluster"):
        await connection.open()
    await connection.close()
