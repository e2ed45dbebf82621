"""A job costs the server no more calls and commands than recorded: a change that needs more of them is noticed here.

Counts don't depend on the machine. A lower count passes; then lower the record too. If a change is worth a higher one,
record it and give the reason in the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobwire import NewJob, Queue, Worker, connect, embedded
from jobwire.backends.monque.connection import side_data
from jobwire.backends.monque.work import claim as monque_claim
from jobwire.boundary import Completed, ConsumerSettings
from jobwire.connection import Connection
from jobwire.embedded import Server

from .counters import Read, count_of_mongo, count_of_postgres, count_of_valkey
from .recorded import JOBS, RECORDED, Counts

AT_ONCE = (1, 10, 100)


@dataclass(frozen=True, slots=True)
class Counted:
    """A connection to a store whose calls are counted, and the counts."""

    protocol: str
    connection: Connection
    read: Read

    def check(self, scenario: str, before: Counts) -> None:
        """Compares what was counted since `before` with the record of the scenario."""
        found = {name: count - before[name] for name, count in self.read().items()}
        recorded = RECORDED[self.protocol][scenario]
        assert found.keys() == recorded.keys()
        over = {
            name: f"{count} found, {recorded[name]} recorded" for name, count in found.items() if count > recorded[name]
        }
        assert not over, f"{self.protocol}, {scenario}, {JOBS[scenario]} jobs: {over}"


@pytest.fixture(scope="module")
def own_valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without other clients, whose counters are this test's alone."""
    with embedded.valkey(tmp_path_factory.mktemp("counted"), durable=False) as server:
        yield server


def _read(request: pytest.FixtureRequest, protocol: str, monkeypatch: pytest.MonkeyPatch) -> Read:
    match protocol:
        case "pgboss":
            return count_of_postgres(monkeypatch)
        case "monque":
            # What a slow machine would read again because it is old.
            monkeypatch.setattr(monque_claim, "_FRESH", 600.0)
            monkeypatch.setattr(side_data, "_PAUSE_KNOWN_FOR", 600.0)
            return count_of_mongo(monkeypatch)
        case _:
            return count_of_valkey(request.getfixturevalue("own_valkey").url)


@pytest.fixture(params=list(RECORDED))
async def counted(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, unique: str
) -> AsyncIterator[Counted]:
    protocol: str = request.param
    read = _read(request, protocol, monkeypatch)
    if protocol in ("bullmq", "bridgemq"):
        place = "prefix" if protocol == "bullmq" else "namespace"
        url = f"{protocol}+{request.getfixturevalue('own_valkey').url}?{place}={unique}"
    else:
        url = request.getfixturevalue(f"jobwire_{protocol}_url")
    async with connect(url) as connection, Queue("q", connection) as queue:
        # What the first job of a connection costs is not a job's cost: scripts, tables, the clock.
        await queue.add(0)
        await _drain(connection, 1)
        yield Counted(protocol, connection, read)


async def _drain(connection: Connection, at_once: int) -> int:
    """Claims and completes all jobs, so many in a call, as one lane of a worker does. Returns their number."""
    consumer = connection.backend.consumer(ConsumerSettings("q", "worker"))
    done = 0
    claims = (await consumer.settle([], at_once)).claims
    while claims:
        done += len(claims)
        claims = (await consumer.settle([Completed(claim, b"null") for claim in claims], at_once)).claims
    await consumer.close()
    return done


async def test_adds_one_by_one_cost_no_more_than_recorded(counted: Counted) -> None:
    async with Queue("q", counted.connection) as queue:
        before = counted.read()
        for number in range(JOBS["add"]):
            await queue.add(number)
    counted.check("add", before)


async def test_adds_of_many_callers_cost_no_more_than_recorded(counted: Counted) -> None:
    async with Queue("q", counted.connection) as queue:
        before = counted.read()
        await asyncio.gather(*(queue.add(number) for number in range(JOBS["adds of 1000 callers"])))
    counted.check("adds of 1000 callers", before)


async def test_a_bulk_add_costs_no_more_than_recorded(counted: Counted) -> None:
    async with Queue("q", counted.connection) as queue:
        before = counted.read()
        await queue.add_many([NewJob(number) for number in range(JOBS["bulk add of 1000"])])
    counted.check("bulk add of 1000", before)


@pytest.mark.parametrize("at_once", AT_ONCE)
async def test_claims_and_completions_cost_no_more_than_recorded(counted: Counted, at_once: int) -> None:
    scenario = f"drain, {at_once} in a call"
    jobs = JOBS[scenario]
    async with Queue("q", counted.connection) as queue:
        await queue.add_many([NewJob(number) for number in range(jobs)])
    before = counted.read()
    assert await _drain(counted.connection, at_once) == jobs
    counted.check(scenario, before)


@pytest.mark.parametrize("concurrency", AT_ONCE)
async def test_a_worker_makes_no_more_calls_than_its_lanes_need(counted: Counted, concurrency: int) -> None:
    """The engine settles and claims in as few calls as its lanes allow, whatever the machine."""
    jobs = JOBS[f"drain, {concurrency} in a call"]

    async def nothing(_: object) -> None: ...

    async with Queue("q", counted.connection) as queue:
        await queue.add_many([NewJob(number) for number in range(jobs)])
    worker = Worker("q", nothing, counted.connection, concurrency=concurrency)
    await worker.run_until_idle()
    assert worker.stats.completed == jobs
    lanes = 2 if concurrency >= counted.connection.backend.capabilities.split_from else 1
    per_call = -(-concurrency // lanes)
    # Beside those with jobs: the first of each lane, and those that find nothing at the end.
    assert worker.stats.calls <= jobs / per_call + 2 * lanes + 2


@pytest.mark.parametrize("counted", ["monque"], indirect=True)
async def test_a_worker_that_is_woken_too_late_asks_once(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change wakes a worker of every process, and all but one of them find the job gone."""
    monkeypatch.setattr(monque_claim.Claimer, "crowded", True)
    late = counted.connection.backend.consumer(ConsumerSettings("q", "late"))
    assert not (await late.settle([], 10)).claims
    async with Queue("q", counted.connection) as queue:
        await queue.add(1)
        await late.wait(600.0)
        await _drain(counted.connection, 1)
    before = counted.read()
    assert not (await late.settle([], 10)).claims
    assert counted.read()["commands"] - before["commands"] == 1
    await late.close()


def test_the_documentation_has_the_recorded_costs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "speed.md").read_text()
    columns = ("add", "bulk add of 1000", *(f"drain, {number} in a call" for number in AT_ONCE))
    for protocol, unit in (
        ("bullmq", "commands"),
        ("bridgemq", "commands"),
        ("pgboss", "statements"),
        ("monque", "commands"),
    ):
        costs = [RECORDED[protocol][scenario][unit] / JOBS[scenario] for scenario in columns]
        row = " | ".join([f"| {protocol}, {unit}", *(f"{cost:.2f}" for cost in costs)])
        assert row in page
