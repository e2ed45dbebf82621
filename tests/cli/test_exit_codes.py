"""The documented exit codes, seen from outside: 0 done, 1 refused, 2 usage, 3 store unreachable, 4 nothing found."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]

DEAD = ("--url", "bullmq+redis://127.0.0.1:1")
DEAD_STORES = (
    "bullmq+redis://127.0.0.1:1", "bridgemq+redis://127.0.0.1:1", "pgboss+postgresql://127.0.0.1:1/x",
    "monque+mongodb://127.0.0.1:1/x?serverSelectionTimeoutMS=200",
)  # fmt: skip
COMMANDS = (
    ("queues",), ("top",), ("counts", "q"), ("jobs", "q"), ("job", "q", "1"), ("logs", "q", "1"), ("add", "q", "1"),
    ("wait", "q", "1"), ("retry", "q", "1"), ("remove", "q", "--all"), ("promote", "q", "1"), ("pause", "q"),
    ("resume", "q"), ("drain", "q", "--yes"), ("clean", "q", "--older-than", "1"), ("obliterate", "q"),
    ("schedules", "list"), ("schedules", "add", "q", "k", "--cron", "@daily"), ("schedules", "drop", "q", "k"),
    ("schedules", "run", "q", "k"), ("events", "q", "-f"), ("workers", "q"), ("flow", "q", "1"), ("bench",),
    ("doctor",),
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_ends_with_3_if_the_store_is_away(call: Call, command: tuple[str, ...]) -> None:
    said = call(*command, *DEAD)
    assert (said.code, said.out) == (3, ""), said
    assert said.err.splitlines()[-1].startswith("jobwire: "), said
    assert "Traceback" not in said.err


@pytest.mark.parametrize("url", DEAD_STORES, ids=lambda url: url.partition("+")[0])
def test_every_store_that_is_away_gives_3(call: Call, url: str) -> None:
    said = call("counts", "q", "--url", url)
    assert (said.code, said.out) == (3, ""), said


def test_the_codes_of_a_process(spawn: Call, jobwire_url: str) -> None:
    where = ("--url", jobwire_url)
    assert spawn("add", "emails", "1", *where).code == 0
    assert spawn("job", "emails", "404", *where).code == 4


@pytest.mark.parametrize(
    ("given", "words"),
    [(b"\xff\xfe", "not "), (b"{", "the job's data is not JSON"), (b"", "the job's data is not JSON")],
    ids=["bytes", "half", "nothing"],
)
def test_what_comes_from_stdin_may_be_wrong(start: Call, jobwire_url: str, given: bytes, words: str) -> None:
    adding = start("add", "emails", "-", "--url", jobwire_url, stdin=subprocess.PIPE, text=False)
    out, err = adding.communicate(given, timeout=60)
    assert (adding.returncode, out) == (1, b""), err
    assert words in err.decode()
    assert err.count(b"\n") == 1


def test_a_line_that_is_wrong_stops_all_before_the_first_is_added(
    call: Call, jobwire_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("1\n\n{to: a}\n"))
    said = call("add", "emails", "-", "--lines", "--url", jobwire_url)
    assert (said.code, said.out) == (1, ""), said
    assert "line 3 is not JSON" in said.err
    assert call("queues", "--url", jobwire_url).code == 4
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n\n2\n"))
    assert call("add", "emails", "-", "--lines", "--url", jobwire_url).out == "1\n2\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert call("add", "emails", "-", "--lines", "--url", jobwire_url).code == 4
