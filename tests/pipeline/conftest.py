"""One Spark session for all tests that carry `xdist_group("spark")`, and the four stores by protocol."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from jobwire.pipeline.session import spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark of two cores in this process, started once."""
    session = spark_session(
        "local[2,3]",  # a task may fail twice
        {
            "spark.driver.memory": "1500m",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.sql.shuffle.partitions": "2",
        },
    )
    yield session
    session.stop()


def _bullmq(request: pytest.FixtureRequest, place: str) -> str:
    return f"bullmq+{request.getfixturevalue('jobwire_valkey').url}?prefix={place}"


def _bridgemq(request: pytest.FixtureRequest, place: str) -> str:
    return f"bridgemq+{request.getfixturevalue('jobwire_valkey').url}?namespace={place}"


def _pgboss(request: pytest.FixtureRequest, place: str) -> str:
    return f"pgboss+{request.getfixturevalue('jobwire_postgres').url}?schema={place}"


def _monque(request: pytest.FixtureRequest, place: str) -> str:
    server = request.getfixturevalue("jobwire_mongo").url

    def drop() -> None:
        with MongoClient(server) as client:
            client.drop_database(place)

    request.addfinalizer(drop)
    return f"monque+{server.replace('/?', f'/{place}?')}&max_retries=1"


PROTOCOLS: dict[str, Callable[[pytest.FixtureRequest, str], str]] = {
    "bullmq": _bullmq,
    "bridgemq": _bridgemq,
    "pgboss": _pgboss,
    "monque": _monque,
}


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """`place("pgboss")`: the URL of an empty store of that protocol, the test's own."""

    def make(protocol: str) -> str:
        return PROTOCOLS[protocol](request, f"t{uuid.uuid4().hex[:12]}")

    return make


@pytest.fixture(params=PROTOCOLS)
def url(request: pytest.FixtureRequest) -> str:
    """An empty store of each protocol in turn."""
    return PROTOCOLS[request.param](request, f"t{uuid.uuid4().hex[:12]}")


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """The folder of an empty lake."""
    return str(tmp_path / "lake")
