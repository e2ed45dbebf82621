"""On loopback every user of the machine can connect, so each server has a password that only its owner can read."""

from __future__ import annotations

import stat
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from socket import create_server
from urllib.parse import urlsplit

import psycopg
import pymongo
import pytest
import redis
from pymongo.errors import OperationFailure

from jobwire import embedded
from jobwire.embedded import binaries, locks
from jobwire.embedded.process import started

from .conftest import SLOW_TO_START

KINDS = ["valkey", *SLOW_TO_START]


def without_password(url: str) -> str:
    parts = urlsplit(url)
    return url.replace(f":{parts.password}@", "@").replace("//@", "//")


def test_valkey_turns_away_a_client_without_the_password(tmp_path):
    with (
        embedded.valkey(tmp_path, durable=False) as server,
        redis.Redis.from_url(without_password(server.url)) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()


@pytest.mark.slow
def test_postgres_turns_away_a_client_without_the_password(tmp_path):
    with (
        embedded.postgres(tmp_path, durable=False) as server,
        pytest.raises(psycopg.OperationalError, match="no password supplied"),
    ):
        psycopg.connect(without_password(server.url))


@pytest.mark.slow
def test_mongo_turns_away_a_client_without_the_password(tmp_path):
    with embedded.mongo(tmp_path, durable=False) as server:
        port = urlsplit(server.url).port
        with (
            pymongo.MongoClient(f"mongodb://127.0.0.1:{port}/?directConnection=true") as client,
            pytest.raises(OperationFailure, match="requires authentication"),
        ):
            client.test.jobs.find_one()


@pytest.mark.slow
def test_every_node_of_a_cluster_turns_away_a_client_without_the_password(tmp_path):
    with embedded.valkey_cluster(tmp_path, durable=False) as cluster:
        assert len({urlsplit(url).password for url in cluster.urls}) == 1
        for url in cluster.urls:
            with redis.Redis.from_url(without_password(url)) as client, pytest.raises(redis.AuthenticationError):
                client.ping()


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_owner_of_the_folder_can_read_the_password(tmp_path, kind):
    with getattr(embedded, kind)(tmp_path, durable=False) as server:
        password = urlsplit(server.url).password
        assert password
        holders = {path.name for path in server.folder.iterdir() if path.is_file() and password in path.read_text()}
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in server.folder.iterdir() if path.is_file()}
        assert holders <= {"password", "state.json", "valkey.conf"}  # in no log
        assert set(modes.values()) == {0o600}, modes
        assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
        assert password not in repr(server)
        assert password not in Path(f"/proc/{server.pid}/cmdline").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_the_password_stays_the_same_from_one_run_to_the_next(tmp_path, kind):
    with getattr(embedded, kind)(tmp_path, durable=False) as server:
        first = urlsplit(server.url).password
    with getattr(embedded, kind)(tmp_path, durable=False) as server:
        assert urlsplit(server.url).password == first


def test_the_valkey_of_an_older_folder_gets_a_password_and_keeps_its_data(tmp_path):
    data = tmp_path / "valkey" / "data"
    data.mkdir(parents=True)
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [binaries.VALKEY.find(), "--bind", "127.0.0.1", "--port", str(port), "--dir", data, "--appendonly", "yes"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as old, redis.Redis(port=port) as client:
        locks.wait_until(lambda: _pongs(client), 20, "the old server does not start")
        client.set("kept", 1)
        old.terminate()
    with embedded.valkey(tmp_path) as server, redis.Redis.from_url(server.url) as client:
        assert urlsplit(server.url).password
        assert client.get("kept") == b"1"
        assert client.incr("kept") == 2


@pytest.mark.slow
def test_the_mongo_of_an_older_folder_gets_a_password_and_keeps_its_data(tmp_path):
    data = tmp_path / "mongo" / "data"
    data.mkdir(parents=True)
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        binaries.MONGO.find(),
        "--bind_ip",
        "127.0.0.1",
        "--port",
        str(port),
        "--dbpath",
        data,
        "--replSet",
        "rs0",
    ]
    with (
        subprocess.Popen(command, stdout=subprocess.DEVNULL) as old,
        pymongo.MongoClient(port=port, directConnection=True) as client,
    ):
        members = [{"_id": 0, "host": f"127.0.0.1:{port}"}]
        client.admin.command({"replSetInitiate": {"_id": "rs0", "members": members}})
        locks.wait_until(lambda: client.admin.command("hello")["isWritablePrimary"], 20, "there is no primary")
        client.test.jobs.insert_one({"_id": "kept"})
        old.terminate()
    with embedded.mongo(tmp_path) as server, pymongo.MongoClient(server.url) as client:
        assert urlsplit(server.url).password
        assert client.test.jobs.find_one() == {"_id": "kept"}
        client.test.jobs.insert_one({"_id": "new"})


@pytest.mark.slow
def test_a_lost_password_file_of_mongo_is_made_again(tmp_path):
    with embedded.mongo(tmp_path) as server:
        first = server.url
    (server.folder / "password").unlink()
    with embedded.mongo(tmp_path) as server, pymongo.MongoClient(server.url) as client:
        assert server.url != first
        client.test.jobs.insert_one({"_id": "new"})


def test_a_program_that_took_the_port_is_not_sent_the_password(tmp_path):
    with embedded.valkey(tmp_path, durable=False) as server:
        first = urlsplit(server.url)
    heard = bytearray()
    with create_server(("127.0.0.1", first.port or 0)) as squatter:
        squatter.settimeout(0.2)
        over = threading.Event()

        def listen() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    connection, _ = squatter.accept()
                    with connection:
                        connection.settimeout(0.2)
                        heard.extend(connection.recv(4096))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            with embedded.valkey(tmp_path, durable=False) as server:
                assert urlsplit(server.url).port != first.port
                assert started(server.pid) is not None
        finally:
            over.set()
            thread.join()
    assert not heard


def _pongs(client: redis.Redis) -> bool:
    with suppress(redis.ConnectionError):
        return client.ping()
    return False
