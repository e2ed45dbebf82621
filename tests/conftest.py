"""Fixtures of jobwire's own suite. The servers are those of `jobwire_pytest`, as users have them."""

from __future__ import annotations

import gc
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis import settings

from jobwire.embedded import Server
from jobwire.worker import listener

# Loaded here and not by its entry point (`-p no:jobwire`), so that coverage begins before jobwire is imported.
pytest_plugins = ["jobwire_pytest", "pytester", "queue_fixtures", "postgres_fixtures", "campaign_fixtures"]

# Tests start hundreds of processes, and without bytecode each of them compiles jobwire again. Every process that runs
# tests would do the same with the tests themselves, whose assertions pytest rewrites.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A run in the background ignores Ctrl-C, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure of a property; pytest-timeout ends a test that hangs.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

LONGEST_ID = 200
"""Characters in the id of a test: it stands in every report, and in the names of files and processes."""


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names a long text by its beginning and its length."""
    return f"{val[:30]!r} of {len(val)}" if isinstance(val, str | bytes) and len(val) > 100 else None


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist appends the name of a group
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    long = [item.nodeid for item in items if len(item.nodeid) > LONGEST_ID]
    if long:
        shown = "\n".join(f"  {len(nodeid)}: {nodeid[:LONGEST_ID]}..." for nodeid in long)
        raise pytest.UsageError(f"ids of tests are at most {LONGEST_ID} characters long; give these `ids=`:\n{shown}")
    for item in items:
        if "quick_spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)  # starting Spark takes seconds, and so do most of its queries


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Takes modules and tests, which stay to the end, out of the garbage collector's sight: it took 0.3 s a time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def unique() -> str:
    """A name that no other test has: for a prefix, a schema, a database."""
    return f"test_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets an idle worker wait for ten minutes instead of five seconds, so that only a wake-up can explain its work."""
    monkeypatch.setattr(listener, "_LONGEST_WAIT", 600.0)


@pytest.fixture
def frequent_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets an idle worker wait for a second instead of five, so that it soon notices a server that does not answer."""
    monkeypatch.setattr(listener, "_LONGEST_WAIT", 1.0)


@pytest.fixture
def redis_client(jobwire_valkey: Server) -> Iterator[redis.Redis]:
    """A plain driver connection to the run's Valkey, for looking at what jobwire stored."""
    with redis.Redis.from_url(jobwire_valkey.url, decode_responses=True) as client:
        yield client


@pytest.fixture(scope="session")
def quick_spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Halves the time in which a Spark starts, in this process or in others that it starts. Shared by all workers."""
    from quick_java import quick_java

    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "quick-java"
    folder.mkdir(exist_ok=True)
    cache: pytest.Cache | None = getattr(request.config, "cache", None)  # there is none with -p no:cacheprovider
    with quick_java(folder, folder if cache is None else cache.mkdir("quick-java")):
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, quick_spark: None) -> Iterator[Any]:
    """A Spark of two cores in this process, started once. Tests that use it carry `xdist_group("spark")`
    or `xdist_group("spark-movers")`: two groups that take about the same time, each in a process of its own. Tests
    whose programs start a Spark themselves are in a third one, `xdist_group("spark-apart")`."""
    from jobwire.pipeline.spark.session import SMALL, spark_session

    session = spark_session(
        "local[2,3]",  # a task may fail twice
        {
            **SMALL,
            "spark.driver.memory": "1500m",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.sql.shuffle.partitions": "2",
        },
    )
    yield session
    session.stop()
