"""Opening a store: which it is, and what it can't be."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobwire import Queue, StoreUnavailable, Worker, connect
from jobwire.errors import NotSupported


async def test_an_embedded_server_is_started_and_shared(tmp_path: Path):
    url = f"bridgemq+embedded:{tmp_path}"
    async with Queue("mail", url) as queue, Worker("mail", lambda job: job.data * 2, url):
        assert await (await queue.add(21)).wait(timeout=20) == 42


async def test_namespaces_of_one_server_do_not_see_each_other(jobwire_valkey, namespace):
    async with (
        Queue("mail", f"bridgemq+{jobwire_valkey.url}?namespace={namespace}-a") as one,
        Queue("mail", f"bridgemq+{jobwire_valkey.url}?namespace={namespace}-b") as other,
    ):
        added = await one.add(1)
        assert await other.get(added.id) is None
        assert sum((await other.counts()).values()) == 0


async def test_a_server_that_is_not_there_is_unavailable_and_its_password_stays_secret():
    connection = connect("bridgemq+redis://:hunter2@127.0.0.1:1/0")
    with pytest.raises(StoreUnavailable) as refusal:
        await connection.open()
    assert "hunter2" not in str(refusal.value)
    await connection.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [({"keep_completed": 5}, "24 hours"), ({"backoff": lambda *_: 0.0}, "fixed, linear or exponential")],
    ids=["keep_completed", "backoff"],
)
async def test_what_a_worker_can_not_be_told_is_refused_with_the_nearest_thing(connection, options, words):
    with pytest.raises(NotSupported, match=words):
        await Worker("mail", lambda job: None, connection, **options).run(signals=False)
