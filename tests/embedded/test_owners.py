"""No server runs as root, and a folder that root has used still works for its owner."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobwire import embedded
from jobwire.embedded.ownership import Account, give
from jobwire.embedded.privileges import before_exec

from .conftest import SLOW_TO_START

KINDS = ["valkey", *SLOW_TO_START]
AS_ROOT = os.geteuid() == 0
SOMEBODY = Account(1, 1) if AS_ROOT else Account(os.getuid(), os.getgid())  # daemon: every machine has it
NAMELESS = Account(54321, 54321) if AS_ROOT else SOMEBODY


def become(account: Account) -> object:
    """What makes a process of the test that of another user, who can still run this Python below /root."""
    return before_exec(account, None, [Path(sys.executable)]) if AS_ROOT else None


def everything(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.rglob("*")


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in everything(folder)}


def uid_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("Uid:")[2].split()[0])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of somebody's."""
    (tmp_path / "project").mkdir()
    os.chown(tmp_path / "project", SOMEBODY.uid, SOMEBODY.gid)
    return tmp_path / "project"


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_root_used_once_works_for_its_owner(project, user, kind):
    with getattr(embedded, kind)(project / ".jobwire") as server:
        assert uid_of(server.pid) == SOMEBODY.uid
        url = server.url
    assert owners(project) == {SOMEBODY.uid}
    owner = user(kind, project / ".jobwire", become(SOMEBODY))
    assert owner.joined() == url
    owner.leave()
    with getattr(embedded, kind)(project / ".jobwire") as server:  # and for root again
        assert server.url == url
    assert owners(project) == {SOMEBODY.uid}


def test_root_and_the_owner_share_a_server(project, user):
    with embedded.valkey(project / ".jobwire") as server:
        assert user("valkey", project / ".jobwire", become(SOMEBODY)).joined() == server.url


@pytest.mark.parametrize("kind", KINDS)
def test_an_owner_that_has_no_name_is_one_too(tmp_path, kind):
    os.chown(tmp_path, NAMELESS.uid, NAMELESS.gid)
    with getattr(embedded, kind)(tmp_path / ".jobwire", durable=False) as server:
        assert uid_of(server.pid) == NAMELESS.uid
    assert owners(tmp_path) == {NAMELESS.uid}


@pytest.mark.parametrize("kind", KINDS)
def test_no_server_runs_as_root_in_a_folder_of_root(tmp_path, kind):
    with getattr(embedded, kind)(tmp_path, durable=False) as server:
        assert uid_of(server.pid) != 0


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_a_server_that_ran_as_another_user_is_taken_over(tmp_path, kind):
    with getattr(embedded, kind)(tmp_path) as server:
        folder, url = server.folder, server.url
    give(folder, Account(os.getuid(), os.getgid()))
    with getattr(embedded, kind)(tmp_path) as server:
        assert server.url == url
        assert uid_of(server.pid) != 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_root_had_locked_is_given_back_when_root_comes_again(project, user, kind):
    with getattr(embedded, kind)(project) as server:
        folder, url = server.folder, server.url
    give(folder, Account(os.getuid(), os.getgid()))
    with getattr(embedded, kind)(project):
        pass
    assert owners(project) == {SOMEBODY.uid}
    assert user(kind, project, become(SOMEBODY)).joined() == url


@pytest.mark.parametrize("kind", KINDS)
def test_somebody_other_than_root_can_run_a_server(project, user, kind):
    other = user(kind, project, become(SOMEBODY))
    assert other.joined().startswith(("redis://", "postgresql://", "mongodb://"))
    assert owners(project) == {SOMEBODY.uid}


def test_the_owner_of_a_folder_gets_no_right_of_root(tmp_path, project):
    """Whoever has the password of a server can do what its server can do. Only a program out of the owner's reach
    keeps a right of root's: to enter and read folders."""
    with embedded.valkey(project / ".jobwire") as server:
        lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    [effective] = [int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")]
    assert effective & ~(1 << 2) == 0
