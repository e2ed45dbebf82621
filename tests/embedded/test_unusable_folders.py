"""A folder that can't hold a server is named in one sentence, with what to do."""

from __future__ import annotations

import errno
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from jobwire import embedded
from jobwire.embedded.errors import unusable
from jobwire.embedded.ownership import Account
from jobwire.embedded.privileges import before_exec, unprivileged_account

from .conftest import SLOW_TO_START

SOMEBODY = unprivileged_account() if os.geteuid() == 0 else Account(os.getuid(), os.getgid())
KINDS = ["valkey", *SLOW_TO_START]

_PROGRAM = """
import sys
from jobwire import embedded
try:
    embedded.valkey(sys.argv[1])
except embedded.EmbeddedFailed as error:
    print(error)
"""


def refusal(folder: Path, kind: str = "valkey") -> str:
    with pytest.raises(embedded.EmbeddedFailed) as caught:
        getattr(embedded, kind)(folder)
    return str(caught.value)


def refusal_of_somebody(folder: Path) -> str:
    """What a user without rights reads."""
    become = before_exec(SOMEBODY, None, [Path(sys.executable)]) if os.geteuid() == 0 else None
    command = [sys.executable, "-c", _PROGRAM, str(folder)]
    done = subprocess.run(command, preexec_fn=become, capture_output=True, text=True, check=True, cwd="/")
    return done.stdout


def is_a_sentence(words: str, *parts: str) -> None:
    assert words.strip().count("\n") == 0, words
    for part in parts:
        assert part in words, words


def test_a_file_in_its_place(tmp_path):
    (tmp_path / "taken").write_text("mine")
    is_a_sentence(refusal(tmp_path / "taken"), f"{tmp_path / 'taken'} is not a folder", "name another folder")


def test_a_file_above_it(tmp_path):
    (tmp_path / "taken").write_text("mine")
    is_a_sentence(refusal(tmp_path / "taken" / "jobs"), f"{tmp_path / 'taken'} is not a folder")


def test_a_file_in_the_place_of_the_servers_own_folder(tmp_path):
    (tmp_path / "valkey").write_text("mine")
    is_a_sentence(refusal(tmp_path), f"{tmp_path / 'valkey'} is not a folder")


def test_a_name_that_is_too_long(tmp_path):
    is_a_sentence(refusal(tmp_path / ("x" * 300)), "its name is too long", "name another folder")


def test_a_folder_that_may_not_be_written(tmp_path):
    os.chmod(tmp_path, 0o555)
    is_a_sentence(refusal_of_somebody(tmp_path / "jobs"), f"{tmp_path} belongs to", "name another folder")


def test_a_folder_of_another_user(tmp_path):
    with embedded.valkey(tmp_path):
        pass
    os.chmod(tmp_path / "valkey" / "holders.lock", 0)
    words = refusal_of_somebody(tmp_path)
    is_a_sentence(words, "belongs to", f"chown -R {pwd.getpwuid(SOMEBODY.uid).pw_name} {tmp_path})")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a quarter of a megabyte, where that can be made: by root."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("only root can mount a small file system")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk(small_disk, kind):
    with suppress(OSError), (small_disk / "filler").open("wb", buffering=0) as filler:
        while filler.write(bytes(4096)):
            pass
    is_a_sentence(refusal(small_disk / "jobs", kind), "the disk is full")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgres", "mongo"])
def test_a_disk_that_the_server_fills(small_disk, kind):
    is_a_sentence(refusal(small_disk / "jobs", kind), "the disk is full")


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.EROFS, "read-only"), (errno.EDQUOT, "quota"), (errno.ENOLCK, os.strerror(errno.ENOLCK))],
)
def test_other_causes_are_named(number, words):
    error = unusable(Path("/srv/jobs"), OSError(number, os.strerror(number), "/srv/jobs/valkey"))
    is_a_sentence(str(error), "/srv/jobs", words, "name another folder")
