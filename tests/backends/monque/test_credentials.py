"""Credentials that stop holding: a refusal, however the driver puts it."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
from pymongo import MongoClient

from awaiting import eventually
from faults.proxy import Proxy
from jobwire import Queue, StoreRefused, StoreUnavailable, Worker

# The driver leaves a socket to the collector if it is closed while it connects.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture
def admin(jobwire_mongo, unique):
    """The database of users, one of whom is the test's own with the password `first`."""
    with MongoClient(jobwire_mongo.url) as client:
        client.admin.command("createUser", unique, pwd="first", roles=["root"])
        yield client.admin
        client.admin.command("dropUser", unique)


@pytest.fixture
async def proxy(jobwire_mongo) -> AsyncIterator[Proxy]:
    """Cuts connections, so that the next call has to log in."""
    async with Proxy(urlsplit(jobwire_mongo.url).port or 0) as proxy:
        yield proxy
    gc.collect()


@pytest.fixture
def theirs(url, admin, proxy, unique) -> str:
    scheme, _, rest = url.partition("//")
    _, _, place = rest.partition("/")
    return f"{scheme}//{unique}:first@127.0.0.1:{proxy.port}/{place}&serverSelectionTimeoutMS=1000"


async def is_refused(queue: Queue) -> bool:
    try:
        await queue.counts()
    except StoreRefused:
        return True
    except StoreUnavailable:  # the connection that was cut
        return False
    return False


async def test_a_changed_password_is_refused_at_every_attempt(admin, proxy, theirs, unique):
    async with Queue("emails", theirs) as queue:
        admin.command("updateUser", unique, pwd="second")
        proxy.cut()
        await eventually(lambda: is_refused(queue))
        for _ in range(3):  # the driver gives the reason once; from then on it finds no server
            with pytest.raises(StoreRefused):
                await queue.counts()


async def test_a_worker_goes_on_when_its_password_holds_again(url, admin, proxy, theirs, unique):
    async with (
        Queue("emails", url) as queue,
        Queue("emails", theirs) as revoked,
        Worker("emails", lambda job: job.data * 2, theirs) as worker,
    ):
        assert await (await queue.add(1)).wait(timeout=20) == 2
        admin.command("updateUser", unique, pwd="second")
        proxy.cut()
        await eventually(lambda: is_refused(revoked))
        await eventually(lambda: not worker.connected)
        job = await queue.add(2)
        admin.command("updateUser", unique, pwd="first")
        assert await job.wait(timeout=60) == 4
