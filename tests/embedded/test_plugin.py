"""The fixtures that users of jobwire get from its pytest plugin."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pymongo
import pytest
from redis.cluster import RedisCluster

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
    assert jobwire_url.startswith(f"bullmq+{jobwire_valkey.url}?prefix=test-")
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


def test_the_plugin_imports_no_server_machinery():
    code = "import sys, jobwire.testing.plugin; print([m for m in sys.modules if m.startswith('jobwire.embedded')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
