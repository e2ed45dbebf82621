"""Ids of new jobs: they grow, they are UUIDs of version 7, and no two processes make the same ones."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from jobwire.backends import uuid7
from jobwire.backends.uuid7 import new_id, new_ids


@pytest.mark.parametrize("make", [lambda: new_ids(1000), lambda: [new_id() for _ in range(1000)]], ids=["many", "one"])
def test_ids_grow(make: Callable[[], list[str]]) -> None:
    made = [*make(), *make()]
    assert made == sorted(made)
    assert len(set(made)) == 2000


@pytest.mark.parametrize("first", [0, 2**48 - 2, 2**62 - 2, 2**73 + 2**48 - 2])
def test_ids_grow_across_the_groups_of_their_digits(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    monkeypatch.setattr(uuid7._tails, "_millisecond", 2**47)
    monkeypatch.setattr(uuid7._tails, "_tail", first)
    made = [*new_ids(4), new_id()]
    numbers = [uuid.UUID(one).int for one in made]
    tails = [(number >> 64 & 0xFFF) << 62 | number & (2**62 - 1) for number in numbers]
    assert tails == [first, first + 1, first + 2, first + 3, first + 4]
    assert {number >> 80 for number in numbers} == {2**47}
    assert {(uuid.UUID(one).version, uuid.UUID(one).variant) for one in made} == {(7, uuid.RFC_4122)}


def test_ids_grow_while_the_clock_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uuid7._tails, "_millisecond", 2**47)
    made = [*new_ids(3), new_id(), new_id(), *new_ids(3)]
    assert made == sorted(set(made))


def test_threads_get_different_ids() -> None:
    with ThreadPoolExecutor(8) as threads:
        made = [one for some in threads.map(lambda _: [new_id(), *new_ids(50)], range(200)) for one in some]
    assert len(set(made)) == len(made)


FORKS = """
import os
from jobwire.backends import uuid7

uuid7.new_id()
uuid7._tails._millisecond = 2**47  # the child's clock can't move on from it
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, " ".join(uuid7.new_ids(100)).encode())
    os._exit(0)
os.wait()
print(len({*os.read(read, 10_000).decode().split(), *uuid7.new_ids(100)}))
"""


def test_a_forked_process_does_not_repeat_its_parents_ids() -> None:
    program = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True, timeout=60)
    assert program.stdout == "200\n"
