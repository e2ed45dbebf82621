"""One suite, run on every protocol. A new protocol joins with one entry in PROTOCOLS.

What only some protocols can do is tested inside `with needs(queue, Feature.PAUSE):`; on a protocol without the feature
the same body must raise NotSupported instead.
"""

from __future__ import annotations

import contextlib
import inspect
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import awaiting
from jobwire.boundary import Consumer, Feature
from jobwire.connection import Connection
from jobwire.embedded import Server
from jobwire.errors import NotSupported
from jobwire.model import Job
from jobwire.queue import Queue

from .recycled import Databases, Schemas, new_name

QUEUE = "letters"


def _is_asked_for_its_place(request: pytest.FixtureRequest) -> bool:
    """Whether the test itself opens the place: it may be about one that nothing was ever made in."""
    return not {"url", "remote"}.isdisjoint(inspect.signature(request.function).parameters)


@pytest.fixture(scope="session")
def schemas(jobwire_postgres: Server) -> Iterator[Schemas]:
    with contextlib.closing(Schemas(jobwire_postgres.url)) as made:
        yield made


@pytest.fixture(scope="session")
def databases(jobwire_mongo: Server) -> Iterator[Databases]:
    with contextlib.closing(Databases(jobwire_mongo.url)) as made:
        yield made


def _memory(request: pytest.FixtureRequest, place: str) -> str:
    return f"memory:{place}"


def _bullmq(request: pytest.FixtureRequest, place: str) -> str:
    return f"bullmq+{request.getfixturevalue('jobwire_valkey').url}?prefix={place}"


def _pgboss(request: pytest.FixtureRequest, place: str) -> str:
    if not _is_asked_for_its_place(request):
        schemas: Schemas = request.getfixturevalue("schemas")
        place = schemas.take()
        request.addfinalizer(lambda: schemas.give_back(place))
    return f"pgboss+{request.getfixturevalue('jobwire_postgres').url}?schema={place}"


def _bridgemq(request: pytest.FixtureRequest, place: str) -> str:
    return f"bridgemq+{request.getfixturevalue('jobwire_valkey').url}?namespace={place}"


def _monque(request: pytest.FixtureRequest, place: str) -> str:
    """Runs per job are the instance's setting: as many as the test has `attempts`; Monque's own default is ten."""
    server = request.getfixturevalue("jobwire_mongo").url
    databases: Databases = request.getfixturevalue("databases")
    if _is_asked_for_its_place(request):
        request.addfinalizer(lambda: databases.drop(place))
    else:
        place = databases.take()
        request.addfinalizer(lambda: databases.give_back(place))
    return f"monque+{server.replace('/?', f'/{place}?')}&max_retries={request.getfixturevalue('attempts')}"


PROTOCOLS: dict[str, Callable[[pytest.FixtureRequest, str], str]] = {
    "memory": _memory,
    "bullmq": _bullmq,
    "pgboss": _pgboss,
    "bridgemq": _bridgemq,
    "monque": _monque,
}


@dataclass(frozen=True, slots=True)
class Tries:
    """What makes a failed job run again at once, wherever the protocol has its rules: options for each party."""

    job: Mapping[str, Any]
    worker: Mapping[str, Any] = field(default_factory=dict[str, Any])
    consumer: Mapping[str, Any] = field(default_factory=dict[str, Any])


@pytest.fixture
def attempts(request: pytest.FixtureRequest) -> int:
    """Runs that a job may have, the first included. A test of retries asks for more with `with_attempts`."""
    return getattr(request, "param", 1)


def with_attempts(number: int) -> pytest.MarkDecorator:
    """Lets the jobs of a test run so often: those that are added with `**tries.job`."""
    return pytest.mark.parametrize("attempts", [number], indirect=True, ids=[f"attempts={number}"])


@pytest.fixture
def tries(connection: Connection, attempts: int) -> Tries:
    """Options that give a job its `attempts`. Where no job can ask for them, the instance was opened with them."""
    if connection.backend.capabilities.has(Feature.ATTEMPTS):
        return Tries({"attempts": attempts})

    def at_once(failures: int, job: Job, error: BaseException | str) -> float:
        return 0.0

    return Tries({}, {"backoff": at_once}, {"strategy": at_once})


@pytest.fixture(params=PROTOCOLS)
def url(request: pytest.FixtureRequest) -> str:
    """A place of the test's own on a server that all tests share."""
    return PROTOCOLS[request.param](request, new_name())


@pytest.fixture(params=[name for name in PROTOCOLS if name != "memory"])
def remote(request: pytest.FixtureRequest) -> str:
    """As `url`, for what needs a server that can be away or refuse."""
    return PROTOCOLS[request.param](request, new_name())


@pytest.fixture(scope="session")
def eventually() -> Callable[..., Any]:
    return awaiting.eventually


@pytest.fixture(scope="session")
def finished(eventually: Callable[..., Any]) -> Callable[..., Any]:
    """Await the end of a job: its snapshot once it is in a final state."""

    async def wait(queue: Queue, job_id: str) -> Any:
        async def look() -> Any:
            job = await queue.get(job_id)
            return job if job is not None and job.state.finished else None

        return await eventually(look)

    return wait


@pytest.fixture(scope="session")
def recover(eventually: Callable[..., Any]) -> Callable[..., Any]:
    """Do the protocol's duties until they have taken a job back; the ids."""

    async def until_found(consumer: Consumer) -> list[str]:
        async def look() -> list[str]:
            reports = [await duty.run() for duty in consumer.duties()]
            return [job_id for report in reports for job_id in report.recovered]

        return await eventually(look)

    return until_found


@pytest.fixture(scope="session")
def id_for() -> Callable[[Queue, str], str]:
    """Makes an id of the shape that the queue's protocol takes, the same for the same text."""

    def make(queue: Queue, text: str) -> str:
        match queue.capabilities.ids:
            case "any":
                return text
            case "uuid":
                return str(uuid.uuid5(uuid.NAMESPACE_OID, text))
            case "objectid":
                return uuid.uuid5(uuid.NAMESPACE_OID, text).hex[:24]

    return make


@pytest.fixture(scope="session")
def needs() -> Callable[..., contextlib.AbstractContextManager[None]]:
    """Runs the body where the protocol has every feature; elsewhere it must be refused."""

    @contextlib.contextmanager
    def ask(queue: Queue, *features: Feature) -> Iterator[None]:
        can = queue.capabilities
        if all(can.has(feature) for feature in features):
            yield
            return
        with pytest.raises(NotSupported) as refusal:
            yield
        assert refusal.value.protocol == can.protocol

    return ask
