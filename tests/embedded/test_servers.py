"""Each kind of server starts, answers at its URL, and hides behind loopback."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pymongo
import pytest
import redis
from redis.cluster import RedisCluster

from jobwire import embedded
from jobwire.embedded import locks, process

from .conftest import SLOW_TO_START

LOOPBACK = "0100007F"  # 127.0.0.1 as the kernel writes it


def listening_addresses(pid: int) -> set[str]:
    inodes = set[str]()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    ]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


def test_valkey_answers_at_its_url(tmp_path):
    with embedded.valkey(tmp_path) as server, redis.Redis.from_url(server.url) as client:
        assert client.ping() is True
        assert client.info("server")["process_id"] == server.pid
        assert client.config_get("append*") | client.config_get("save") == {
            "appendonly": "yes",
            "appendfsync": "always",
            "appendfilename": "appendonly.aof",
            "appenddirname": "appendonlydir",
            "save": "",
        }


@pytest.mark.slow
def test_postgres_answers_at_its_url(tmp_path):
    with embedded.postgres(tmp_path) as server, psycopg.connect(server.url) as connection:
        assert connection.info.server_version // 10000 == 18
        settings = "select current_setting('fsync'), current_setting('synchronous_commit')"
        assert connection.execute(settings).fetchone() == ("on", "on")


@pytest.mark.slow
def test_mongo_stores_and_streams_changes(tmp_path):
    with embedded.mongo(tmp_path) as server, pymongo.MongoClient(server.url) as client:
        jobs = client.test.jobs
        with jobs.watch(max_await_time_ms=5000) as changes:
            jobs.insert_one({"_id": 1})
            assert changes.next()["documentKey"] == {"_id": 1}


@pytest.mark.slow
def test_mongo_finds_itself_again_when_its_old_port_is_taken(tmp_path):
    with embedded.mongo(tmp_path) as server, pymongo.MongoClient(server.url) as client:
        client.test.jobs.insert_one({"_id": "kept"})
        address = client.address
    with socket.socket() as squatter:
        squatter.bind(address)
        with embedded.mongo(tmp_path) as server, pymongo.MongoClient(server.url) as client:
            assert client.address != address
            assert client.test.jobs.find_one() == {"_id": "kept"}
            client.test.jobs.insert_one({"_id": "new"})


@pytest.mark.slow
def test_a_cluster_of_three_serves_every_slot(tmp_path):
    with embedded.valkey_cluster(tmp_path) as cluster:
        with RedisCluster.from_url(cluster.url) as client:
            owners = {client.get_node_from_key(f"key-{n}").port for n in range(100)}
            for n in range(100):
                client.set(f"key-{n}", n)
            assert [int(client.get(f"key-{n}")) for n in range(100)] == list(range(100))
        assert owners == {urlsplit(url).port for url in cluster.urls}
        for url in cluster.urls:  # a client that had to be redirected would show here
            with redis.Redis.from_url(url) as node:
                assert "errorstat_MOVED" not in node.info("errorstats")


@pytest.mark.slow
def test_a_cluster_comes_back_with_its_data(tmp_path):
    with embedded.valkey_cluster(tmp_path) as cluster, RedisCluster.from_url(cluster.url) as client:
        for n in range(50):
            client.set(f"key-{n}", n)
    with embedded.valkey_cluster(tmp_path) as cluster, RedisCluster.from_url(cluster.url) as client:
        assert [int(client.get(f"key-{n}")) for n in range(50)] == list(range(50))


@pytest.mark.parametrize("kind", ["valkey", *SLOW_TO_START])
def test_a_server_listens_on_loopback_only(tmp_path, kind):
    with getattr(embedded, kind)(tmp_path, durable=False) as server:
        assert listening_addresses(server.pid) == {LOOPBACK}


@pytest.mark.slow
def test_the_nodes_of_a_cluster_listen_on_loopback_only(tmp_path):
    with embedded.valkey_cluster(tmp_path, durable=False) as cluster:
        assert [listening_addresses(pid) for pid in cluster.pids] == [{LOOPBACK}] * 3


@pytest.mark.parametrize("kind", ["valkey", *SLOW_TO_START])
def test_a_long_folder_name_and_a_change_of_directory_do_no_harm(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    folder = "/".join(["a folder with a rather long name, and 'quotes'"] * 4)
    with getattr(embedded, kind)(folder, durable=False) as server:
        monkeypatch.chdir("/")
        assert server.folder.is_relative_to(tmp_path)
        assert process.started(server.pid) is not None
    assert locks.is_free(server.folder / locks.SERVER)


def test_a_taken_port_is_not_insisted_on(tmp_path):
    with embedded.valkey(tmp_path) as server:
        first = server.url
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", urlsplit(first).port))
        squatter.listen()
        with embedded.valkey(tmp_path) as server, redis.Redis.from_url(server.url) as client:
            assert server.url != first
            assert client.ping() is True


def test_a_server_that_does_not_start_quotes_its_log(tmp_path):
    with embedded.valkey(tmp_path) as server:
        folder = server.folder
    (folder / "data" / "appendonlydir" / "appendonly.aof.manifest").write_text("this is no manifest\n")
    with pytest.raises(embedded.EmbeddedFailed, match=r"(?s)ended with status 1.*server\.log.*AOF manifest"):
        embedded.valkey(tmp_path)
    locks.wait_until(lambda: locks.is_free(folder / locks.SERVER), 20, "something still runs")
