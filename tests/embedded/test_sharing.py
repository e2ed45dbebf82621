"""Processes that name the same folder share a server, which stops with the last of them, however that one ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import redis

from jobwire import embedded
from jobwire.embedded import locks, state
from jobwire.embedded.process import started

from .conftest import SLOW_TO_START


def stopped(folder: Path) -> bool:
    return locks.is_free(folder / "valkey" / locks.SERVER)


def await_stopped(folder: Path) -> None:
    locks.wait_until(lambda: stopped(folder), 20, "the server still runs")


def keeper(server: embedded.Server) -> int:
    stored = state.read(server.folder)
    assert stored is not None
    return stored.keeper


def test_two_processes_share_one_server(tmp_path, user):
    one, two = user("valkey", tmp_path), user("valkey", tmp_path)
    one_url = one.joined()
    assert one_url == two.joined()
    with embedded.valkey(tmp_path) as here:
        assert here.url == one_url


@pytest.mark.slow
def test_many_processes_at_once_start_only_one_server(tmp_path, user):
    users = [user("valkey", tmp_path) for _ in range(6)]
    urls = [each.joined() for each in users]
    assert urls == [urls[0]] * 6
    with redis.Redis.from_url(urls[0]) as client:
        assert client.info("server")["uptime_in_seconds"] < 60
    for each in users:
        assert not stopped(tmp_path)
        each.leave()
    assert stopped(tmp_path)


@pytest.mark.slow
def test_the_server_goes_on_when_its_starter_leaves(tmp_path, user):
    starter = user("valkey", tmp_path)
    starter.joined()
    with embedded.valkey(tmp_path) as server:
        starter.leave()
        with redis.Redis.from_url(server.url) as client:
            assert client.ping() is True
    assert stopped(tmp_path)


def test_two_shares_in_one_process_count_twice(tmp_path):
    one, two = embedded.valkey(tmp_path), embedded.valkey(tmp_path)
    one.close()
    assert not stopped(tmp_path)
    two.close()
    assert stopped(tmp_path)


def test_closing_twice_is_the_same_as_once(tmp_path, user):
    other = user("valkey", tmp_path)
    other.joined()
    server = embedded.valkey(tmp_path)
    server.close()
    server.close()
    assert not stopped(tmp_path)


def test_a_program_that_ends_without_closing_leaves_no_server(tmp_path, user):
    forgetful = user("valkey", tmp_path)
    forgetful.joined()
    assert forgetful.exit() == 0
    assert stopped(tmp_path)


def test_a_killed_user_keeps_no_server_alive(tmp_path, user):
    victim = user("valkey", tmp_path)
    victim.joined()
    victim.kill()
    await_stopped(tmp_path)


def test_a_killed_user_stops_no_server_for_others(tmp_path, user):
    victim = user("valkey", tmp_path)
    victim.joined()
    with embedded.valkey(tmp_path) as server, redis.Redis.from_url(server.url) as client:
        pid = server.pid
        victim.kill()
        assert client.ping() is True
        assert server.pid == pid
    assert stopped(tmp_path)


@pytest.mark.slow
def test_a_user_killed_while_the_server_starts_is_in_nobodys_way(tmp_path, user):
    victim = user("postgres", tmp_path)
    lock = tmp_path / "postgres" / locks.SERVER
    locks.wait_until(lambda: lock.exists() and not locks.is_free(lock), 20, "the server does not start")
    victim.kill()
    with embedded.postgres(tmp_path) as server:
        assert started(server.pid) is not None
    assert locks.is_free(lock)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the fork is what is tested
def test_a_forked_child_does_not_stop_its_parents_server(tmp_path):
    with embedded.valkey(tmp_path) as server:
        pid = server.pid
        child = os.fork()
        if child == 0:
            server.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with redis.Redis.from_url(server.url) as client:
            assert client.ping() is True
        assert server.pid == pid
    assert stopped(tmp_path)


def test_ctrl_c_in_the_users_terminal_does_not_reach_the_server(tmp_path):
    with embedded.valkey(tmp_path) as server:
        own = (os.getpgrp(), os.getsid(0))
        groups = {pid: (os.getpgid(pid), os.getsid(pid)) for pid in (server.pid, keeper(server))}
        assert all(group not in own and session not in own for group, session in groups.values()), groups


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["valkey", "postgres"])
def test_a_server_does_not_outlive_its_keeper(tmp_path, kind):
    with getattr(embedded, kind)(tmp_path) as server:
        pid = server.pid
        os.kill(keeper(server), signal.SIGKILL)
        locks.wait_until(lambda: started(pid) is None, 20, "the server still runs")
        with getattr(embedded, kind)(tmp_path) as again:
            assert again.pid != pid
            assert again.url == server.url


@pytest.mark.parametrize("kind", ["valkey", *SLOW_TO_START])
def test_a_killed_keeper_is_replaced_while_the_server_is_used(tmp_path, kind):
    with getattr(embedded, kind)(tmp_path) as server:
        url, first = server.url, keeper(server)
        os.kill(first, signal.SIGKILL)
        locks.wait_until(lambda: server.pid != 0 and keeper(server) != first, 30, "the keeper is not replaced")
        assert server.url == url
        assert started(server.pid) is not None
    assert locks.is_free(tmp_path / kind / locks.SERVER)


@pytest.mark.slow
def test_the_keeper_is_replaced_by_whichever_process_is_left(tmp_path, user):
    starter, other = user("valkey", tmp_path), user("valkey", tmp_path)
    url = starter.joined()
    other.joined()
    first = state.read(tmp_path / "valkey")
    assert first is not None
    starter.kill()
    os.kill(first.keeper, signal.SIGKILL)
    with redis.Redis.from_url(url) as client:
        locks.wait_until(lambda: _serves(client, first.pid), 20, "the server is not started again")
    other.leave()
    assert stopped(tmp_path)


@pytest.mark.slow
def test_keepers_killed_one_after_the_other_are_each_replaced_once(tmp_path, user):
    users = [user("valkey", tmp_path) for _ in range(3)]
    for each in users:
        each.joined()
    with embedded.valkey(tmp_path) as server:
        for _ in range(3):
            first = keeper(server)
            os.kill(first, signal.SIGKILL)
            locks.wait_until(lambda than=first: server.pid != 0 and keeper(server) != than, 30, "it is not replaced")
        for each in users:
            each.leave()
        assert not stopped(tmp_path)
    assert stopped(tmp_path)


def _serves(client: redis.Redis, other_than: int) -> bool:
    try:
        return client.info("server")["process_id"] != other_than
    except redis.ConnectionError:
        return False


def test_the_state_a_crash_left_behind_is_not_believed(tmp_path):
    with embedded.valkey(tmp_path) as server:
        folder = server.folder
    state.write(
        folder, state.State(os.getpid(), 1, os.getpid(), (41237,), "redis://127.0.0.1:41237/0")
    )  # a pid used again
    with embedded.valkey(tmp_path) as server, redis.Redis.from_url(server.url) as client:
        assert client.ping() is True


@pytest.mark.slow
def test_a_process_with_the_id_of_a_dead_postgres_is_not_taken_for_it(tmp_path):
    with embedded.postgres(tmp_path, durable=False) as server:
        left_behind = server.folder / "data" / "postmaster.pid"
        lines = left_behind.read_text().splitlines()
    left_behind.write_text("\n".join([str(os.getpid()), *lines[1:]]))
    with embedded.postgres(tmp_path, durable=False) as server:
        assert started(server.pid) is not None


@pytest.mark.parametrize("rubbish", ["", "{", "[]", '{"pid": 1}'])
def test_a_damaged_state_file_is_healed(tmp_path, rubbish):
    (tmp_path / "valkey").mkdir()
    (tmp_path / "valkey" / "state.json").write_text(rubbish)
    with embedded.valkey(tmp_path) as server, redis.Redis.from_url(server.url) as client:
        assert client.ping() is True
