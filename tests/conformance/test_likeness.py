"""A memory store that stands in for a protocol refuses what the protocol refuses, in the same words."""

from __future__ import annotations

import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from conformance.conftest import PROTOCOLS, QUEUE
from jobwire import Backoff, JobwireError, Queue, Rate, Worker
from jobwire.boundary import Feature
from jobwire.options import Keep, Parent, Target, Unique

NAMES = [name for name in PROTOCOLS if name != "memory"]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


JOBS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (1, {}),
    "name": (1, {"name": "welcome"}),
    "id": (1, {"id": "order-17"}),
    "id, a number": (1, {"id": "17"}),
    "id, reserved": (1, {"id": "meta"}),
    "id with a colon": (1, {"id": "a:b"}),
    "id with a control character": (1, {"id": "a\nb"}),
    "id of an index": (1, {"id": "x:gone:1"}),
    "long id": (1, {"id": "x" * 300}),
    "priority": (1, {"priority": 5}),
    "priority 0": (1, {"priority": 0}),
    "priority, negative": (1, {"priority": -5}),
    "priority, large": (1, {"priority": 2**22}),
    "priority, huge": (1, {"priority": 2**31}),
    "lifo": (1, {"lifo": True}),
    "attempts": (1, {"attempts": 3}),
    "fixed": (1, {"backoff": Backoff.fixed(1)}),
    "fixed, jitter": (1, {"backoff": Backoff.fixed(1, jitter=0.5)}),
    "fixed, cap": (1, {"backoff": Backoff("fixed", 1.0, cap=5)}),
    "linear": (1, {"backoff": Backoff.linear(1)}),
    "exponential": (1, {"backoff": Backoff.exponential(1)}),
    "exponential, cap": (1, {"backoff": Backoff("exponential", 1.0, cap=60)}),
    "custom": (1, {"backoff": Backoff.custom("mine")}),
    "timeout": (1, {"timeout": 5}),
    "timeout, days": (1, {"timeout": 100_000}),
    "expires": (1, {"expires": 60}),
    "keep": (1, {"keep_completed": 5}),
    "unique": (1, {"unique": Unique("k")}),
    "unique, spaces": (1, {"unique": Unique("  ")}),
    "unique, long": (1, {"unique": Unique("k" * 2000)}),
    "unique, ttl": (1, {"unique": Unique("k", ttl=5)}),
    "unique, replace": (1, {"unique": Unique("k", replace=True)}),
    "target": (1, {"target": Target(server="s1")}),
    "parent": (1, {"parent": Parent("nothing", "a:b")}),
    "run_at": (1, {"run_at": datetime.now(UTC) + timedelta(hours=1)}),
    "delay": (1, {"delay": 60}),
    "null character": ({"a": "x\x00y"}, {}),
    "null character in a key": ({"a\x00": 1}, {}),
    "lone surrogate": ({"a": "\ud800"}, {}),
    "lone surrogate in a key": ({"\ud800": 1}, {}),
    "80 levels": (nested(80), {}),
    "95 levels": (nested(95), {}),
    "unknown extra": (1, {"extra": {"nonsense": 1}}),
    "id as a native option": (1, {"extra": {"id": "0190d0f2-7c6a-7cc0-8000-000000000001"}}),
    "id, an ObjectId": (1, {"id": "0123456789abcdef01234567"}),
    "id, a UUID": (1, {"id": "0190d0f2-7c6a-7cc0-8000-000000000001"}),
    "native option": (1, {"extra": {"retryLimit": 3}}),
    "native option, bad": (1, {"extra": {"retryLimit": -3}}),
    "limit": (1, {"extra": {"maxConcurrent": 1}}),
    "limit of a schedule": (1, {"extra": {"overlap": "skip"}}),
}


async def refusal(queue: Queue, data: Any, options: dict[str, Any]) -> JobwireError | None:
    try:
        await queue.add(data, **options)
    except JobwireError as error:
        return error
    return None


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_a_twin_refuses_what_its_original_refuses(request: pytest.FixtureRequest, name: str) -> None:
    place = f"t{uuid.uuid4().hex[:12]}"
    differences: dict[str, tuple[Any, Any]] = {}
    async with (
        Queue(QUEUE, PROTOCOLS[name](request, place)) as original,
        Queue(QUEUE, f"memory:{place}?like={name}") as twin,
    ):
        for case, (data, options) in JOBS.items():
            there, here = await refusal(original, data, options), await refusal(twin, data, options)
            if "test it with an embedded server" in str(here):
                continue  # what the memory store can't imitate is refused, whatever the original makes of it
            if (type(there), str(there)) != (type(here), str(here)):
                differences[case] = there, here
        assert differences == {}
        assert {state: count for state, count in (await twin.counts()).items() if count} != {}


def constant(failures: int, job: Any, error: str) -> float:
    return 1.0


WORKERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "backoff": {"backoff": constant},
    "backoff by name": {"backoff": {"mine": constant}},
    "keep_completed": {"keep_completed": 5},
    "keep_failed": {"keep_failed": Keep(age=60)},
    "rate": {"rate": Rate(5)},
    "name": {"name": "anna"},
}


@pytest.mark.parametrize("options", WORKERS.values(), ids=WORKERS)
def test_a_twin_refuses_the_workers_that_its_original_refuses(
    request: pytest.FixtureRequest, name: str, options: dict[str, Any]
) -> None:
    raised: list[Any] = []
    for url in (PROTOCOLS[name](request, "anywhere"), f"memory:?like={name}"):
        try:
            Worker(QUEUE, print, url, **options)
            raised.append(None)
        except JobwireError as error:
            raised.append((type(error), str(error)))
    assert raised[0] == raised[1]


@pytest.mark.parametrize("queue", ["letters", "a:b", "with space", "é", "x" * 300, "a\nb"])
async def test_a_twin_takes_the_same_names_of_queues(request: pytest.FixtureRequest, name: str, queue: str) -> None:
    place, raised = f"t{uuid.uuid4().hex[:12]}", []
    for url in (PROTOCOLS[name](request, place), f"memory:{place}?like={name}"):
        try:
            async with Queue(queue, url) as opened:
                await opened.add(1)
            raised.append(None)
        except JobwireError as error:
            raised.append((type(error), str(error)))
    assert raised[0] == raised[1]


# What needs a server: the twin refuses it and says so.
WITHOUT_A_TWIN = {
    Feature.DIAGNOSIS,
    Feature.EXPIRY,
    Feature.KEY_LIMITS,
    Feature.ROUTING,
    Feature.TRACES,
    Feature.TRANSACTIONAL_ADD,
    Feature.TRANSACTIONS,
}


async def test_a_twin_has_the_capabilities_of_its_original(request: pytest.FixtureRequest, name: str) -> None:
    place = f"t{uuid.uuid4().hex[:12]}"
    async with Queue(QUEUE, PROTOCOLS[name](request, place)) as original, Queue(QUEUE, f"memory:?like={name}") as twin:
        wanted, has = original.capabilities, twin.capabilities
        assert (has.protocol, has.priority, has.nearest) == (wanted.protocol, wanted.priority, wanted.nearest)
        assert has.features == wanted.features - WITHOUT_A_TWIN


async def test_a_twin_runs_jobs_in_the_order_of_its_original(request: pytest.FixtureRequest, name: str) -> None:
    place, orders = f"t{uuid.uuid4().hex[:12]}", []
    for url in (PROTOCOLS[name](request, place), f"memory:{place}?like={name}"):
        ran: list[int] = []

        async def handle(job: Any, ran: list[int] = ran) -> None:
            ran.append(job.data)

        async with Queue(QUEUE, url) as queue:
            priorities = [3, 9, 1, 7, 5] if queue.capabilities.priority else [None] * 5
            jobs = [await queue.add(n, **({"priority": p} if p else {})) for n, p in enumerate(priorities)]
            async with Worker(QUEUE, handle, queue.connection):
                for job in jobs:
                    await job.wait(30)
        orders.append(ran)
    assert orders[0] == orders[1]


def test_a_twin_needs_no_driver(name: str) -> None:
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['redis', 'hiredis', 'psycopg', 'pymongo', 'bson']))\n"
        "from jobwire.sync import Queue\n"
        f"with Queue('letters', 'memory:?like={name}') as queue:\n"
        "    queue.add(1)\n"
        "    print(queue.capabilities.protocol)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
