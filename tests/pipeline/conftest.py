"""The four stores by protocol, each empty and the test's own."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from pymongo import MongoClient


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


@pytest.fixture(scope="module")
def shared_place(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """As `place`, for a store that the tests of a module share."""

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
