"""The fixtures that users of jobwire get from its pytest plugin."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import psycopg
import pymongo
import pytest
from redis.cluster import RedisCluster

from jobwire import App

_SUITE = """
import pytest, redis

@pytest.mark.parametrize("number", range(6))
def test_counts(jobwire_valkey, jobwire_url, number):
    with redis.Redis.from_url(jobwire_valkey.url) as client:
        assert client.sadd("urls", jobwire_url) == 1
        client.sadd("servers", jobwire_valkey.url)
        print(f"seen {jobwire_valkey.url} {jobwire_url.split('?')[0]}")
"""


def test_each_test_gets_a_url_of_its_own(jobwire_url, jobwire_valkey, redis_client):
    assert jobwire_url.startswith(f"bullmq+{jobwire_valkey.url}?prefix=test_")
    assert redis_client.ping() is True


def test_the_servers_of_a_run_keep_nothing_on_disk(redis_client, jobwire_postgres):
    assert redis_client.config_get("appendonly") == {"appendonly": "no"}
    with psycopg.connect(jobwire_postgres.url) as connection:
        assert connection.execute("show fsync").fetchone() == ("off",)


@pytest.mark.slow
def test_mongo_and_a_cluster_are_there_too(jobwire_mongo, jobwire_valkey_cluster):
    with pymongo.MongoClient(jobwire_mongo.url) as client:
        assert client.admin.command("hello")["setName"] == "rs0"
    with RedisCluster.from_url(jobwire_valkey_cluster.url) as client:
        assert len(client.get_primaries()) == 3


@pytest.mark.slow
def test_the_workers_of_xdist_share_one_server(tmp_path):
    (tmp_path / "test_suite.py").write_text(_SUITE)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-rP", "-p", "no:cacheprovider", "--basetemp", "base", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "6 passed" in run.stdout, run.stdout + run.stderr
    seen = {line for line in run.stdout.splitlines() if line.startswith("seen ")}
    assert len(seen) == 1, seen


def test_the_plugin_does_not_import_jobwire():
    code = "import sys, jobwire_pytest; print([m for m in sys.modules if m.split('.')[0] == 'jobwire'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_plugin_is_the_one_that_pytest_is_given():
    with (Path(__file__).parents[2] / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["entry-points"]["pytest11"] == {"jobwire": "jobwire_pytest"}


_urls: set[str] = set()


@pytest.mark.parametrize("number", [1, 2])
async def test_one_test_runs_on_every_protocol(jobwire_every_url, number):
    app = App(jobwire_every_url)

    @app.task
    async def double(number: int) -> int:
        return number * 2

    async with app:
        assert set((await app.queue("double").counts()).values()) == {0}
        job = await double.add(number)
        async with app.worker():
            assert await job.wait(timeout=30) == number * 2
    assert jobwire_every_url not in _urls
    _urls.add(jobwire_every_url)


def test_each_protocol_has_a_url(
    jobwire_bullmq_url, jobwire_pgboss_url, jobwire_bridgemq_url, jobwire_memory_url, jobwire_url
):
    urls = [jobwire_bullmq_url, jobwire_pgboss_url, jobwire_bridgemq_url, jobwire_memory_url, jobwire_url]
    assert [url.partition("+")[0].partition(":")[0] for url in urls] == [
        "bullmq",
        "pgboss",
        "bridgemq",
        "memory",
        "bullmq",
    ]


@pytest.mark.slow
async def test_the_schema_of_a_test_is_deleted_at_its_end(pytester, jobwire_postgres):
    pytester.makeconftest(f"""
        import pytest, types

        @pytest.fixture(scope="session")
        def jobwire_postgres():
            return types.SimpleNamespace(url={jobwire_postgres.url!r})
    """)
    pytester.makepyfile("""
        from jobwire.sync import Queue

        def test_adds(jobwire_pgboss_url):
            with Queue("letters", jobwire_pgboss_url) as queue:
                queue.add({"n": 1})
                print("schema", jobwire_pgboss_url.rpartition("=")[2])
    """)
    run = pytester.runpytest_subprocess("-p", "no:jobwire", "-p", "jobwire_pytest", "-rP")
    run.assert_outcomes(passed=1)
    [schema] = [line.split()[1] for line in run.outlines if line.startswith("schema ")]
    with psycopg.connect(jobwire_postgres.url) as connection:
        found = connection.execute("select 1 from pg_namespace where nspname = %s", [schema]).fetchall()
    assert found == []
