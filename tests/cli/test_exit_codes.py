"""The documented exit codes, seen from outside: 0 done, 1 refused, 2 usage, 3 store unreachable, 4 nothing found."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from typer.main import get_command

from jobwire.cli.app import app

Call = Callable[..., Any]

DEAD = ("--url", "bullmq+redis://127.0.0.1:1")
DEAD_STORES = (
    "bullmq+redis://127.0.0.1:1", "bridgemq+redis://127.0.0.1:1", "pgboss+postgresql://127.0.0.1:1/x",
    "monque+mongodb://127.0.0.1:1/x?serverSelectionTimeoutMS=200",
)  # fmt: skip
NEEDS_NO_STORE = {
    "demo",
    "worker",
    "dashboard",
    "keda",
    "tasks",
    "completion",
    "health",
    "pgboss",
    "campaign",
    "pipeline",
}
"""Commands that run without a store, or have tests of their own for one that is away."""
ARGUMENTS = {"queue": ["q"], "job_id": ["1"], "ids": ["1"], "key": ["k"], "data": ["1"]}
OPTIONS = {
    "clean": ["--older-than", "1"], "drain": ["--yes"], "events": ["-f"], "edit": ["--data", "2"],
    "schedules add": ["--cron", "@daily"], "limits": ["--rate", "1/1s"],
}  # fmt: skip


def commands() -> list[list[str]]:
    """Returns a command line for every command of the program that asks a store."""
    found: list[list[str]] = []
    for name, command in get_command(app).commands.items():
        if name in NEEDS_NO_STORE:
            continue
        below = getattr(command, "commands", None)
        for words, one in ((f"{name} {inner}", one) for inner, one in below.items()) if below else [(name, command)]:
            given = [
                value
                for parameter in one.params
                if parameter.param_type_name == "argument" and (parameter.required or parameter.name == "ids")
                for value in ARGUMENTS[parameter.name]
            ]
            found.append([*words.split(), *given, *OPTIONS.get(words, [])])
    return found


COMMANDS = [*commands(), ["remove", "q", "--all"], ["events", "q", "--trim", "1"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_ends_with_3_if_the_store_is_away(call: Call, command: list[str]) -> None:
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
