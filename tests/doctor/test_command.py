"""`jobwire doctor`, as a user has it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from jobwire import Queue
from jobwire.cli import findingview, main
from jobwire.cli.output import console
from jobwire.doctor import Examination, Finding, Severity

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process. Returns its exit code and its output."""
    monkeypatch.delenv("JOBWIRE_URL", raising=False)
    monkeypatch.delenv("JOBWIRE_STORE", raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(list(arguments))
        return code, *capfd.readouterr()

    return call


def in_queue(url: str, act: Callable[[Queue], Any]) -> None:
    async def session() -> None:
        async with Queue("emails", url) as queue:
            await act(queue)

    asyncio.run(session())


def test_a_healthy_store_is_one_line(run: Run, bullmq_url: str) -> None:
    in_queue(bullmq_url, lambda queue: queue.admin.drain())
    code, out, err = run("doctor", bullmq_url)
    assert (code, err) == (0, "")
    [line] = out.splitlines()
    assert line.startswith("✓ bullmq+redis://:***@127.0.0.1:")
    assert "is healthy. Looked at clock, memory, persistence, " in line
    assert line.endswith(" and 1 queue.")
    assert run("doctor", bullmq_url, "--json") == (0, "", "")


def test_findings_are_blocks_of_lines_or_of_json(run: Run, bullmq_url: str) -> None:
    in_queue(bullmq_url, lambda queue: queue.add(1))
    code, out, _ = run("doctor", "--url", bullmq_url)
    assert code == 1
    heading, blank, *block = out.splitlines()
    assert heading.startswith("bullmq+redis://:***@")
    assert blank == ""
    assert block[0] == "warning   A queue has jobs and no worker · emails · no-worker"
    assert [line.split()[0] for line in block[1:4]] == ["evidence", "risk", "remedy"]
    assert block[3] == "remedy    jobwire worker MODULE:HANDLER --queue emails"
    assert block[5].startswith("✗ 1 warning. Looked at ")

    code, out, _ = run("doctor", bullmq_url, "--json")
    [line] = map(json.loads, out.splitlines())
    assert code == 1
    assert (line["code"], line["severity"], line["queue"], line["fixable"]) == ("no-worker", "warning", "emails", False)
    assert line["store"].startswith("bullmq+redis://:***@")


@pytest.mark.parametrize("store", ["bullmq", "bridgemq", "monque"])
def test_a_note_is_not_a_failure(run: Run, store: str, request: pytest.FixtureRequest) -> None:
    code, out, _ = run("doctor", request.getfixturevalue(f"{store}_url"))
    assert code == 0
    assert "note      The store is empty · store-empty" in out
    assert "risk " not in out
    assert out.splitlines()[-1].startswith("✓ Healthy, with 1 note. Looked at ")


def test_trouble_comes_first(run: Run, pgboss_url: str) -> None:
    codes = [json.loads(line)["code"] for line in run("doctor", pgboss_url, "--json")[1].splitlines()]
    assert codes[0] == "durability"  # the server of these tests does not sync
    assert codes[-1] == "store-empty"


def test_a_store_that_is_away_gives_3_and_one_sentence(run: Run, bullmq_url: str) -> None:
    dead = "bullmq+redis://127.0.0.1:1"
    code, out, err = run("doctor", dead)
    assert (code, out) == (3, "")
    assert err.startswith("jobwire: ")
    assert len(err.splitlines()) == 1
    code, out, err = run("doctor", dead, bullmq_url)
    assert code == 3
    assert "Healthy" in out  # the other one is looked at nevertheless
    assert len(err.splitlines()) == 1


def test_a_wrong_url_gives_2_and_the_other_stores_are_looked_at(run: Run, bullmq_url: str) -> None:
    code, out, err = run("doctor", "redis://x", bullmq_url)
    assert (code, "Healthy" in out) == (2, True)
    assert err.startswith("jobwire: url: say which protocol")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("protocol", ["bullmq", "pgboss", "monque", "bridgemq"])
def test_a_folder_without_a_server_stays_as_it_is(run: Run, protocol: str, tmp_path: Path) -> None:
    code, out, err = run("doctor", f"{protocol}+embedded:{tmp_path / 'typo'}")
    assert (code, out) == (3, "")
    assert f"{tmp_path / 'typo'} has no data of an embedded" in err
    assert not (tmp_path / "typo").exists()


def test_several_ways_to_name_a_store_are_refused(run: Run, bullmq_url: str) -> None:
    code, out, err = run("doctor", bullmq_url, "--url", bullmq_url)
    assert (code, out) == (2, "")
    assert "not both" in err


class TestFixing:
    """--fix shows what it will do, asks, does it, and looks again."""

    @pytest.fixture
    def url(self, bridgemq_url: str) -> str:
        return bridgemq_url

    @pytest.fixture(autouse=True)
    def broken(self, valkey: Any, unique: str) -> None:
        with redis.Redis.from_url(valkey.url) as client:
            client.set(f"{unique}:scheduler:lock", "w1")

    def test_without_a_terminal_and_yes_nothing_is_done(self, run: Run, url: str) -> None:
        code, out, err = run("doctor", url, "--fix")
        assert code == 2
        assert "• delete 1 lock that no running job owns  (1 lock without an end: " in out
        assert "add --yes to delete 1 lock that no running job owns" in err
        assert run("doctor", url)[0] == 1

    def test_it_is_fixed_and_looked_at_again(self, run: Run, url: str) -> None:
        code, out, _ = run("doctor", url, "--fix", "--yes")
        assert code == 0
        assert "✓ deleted 1 lock without an owner" in out
        assert out.splitlines()[-1].startswith("✓ ")
        assert run("doctor", url)[0] == 0

    def test_json_has_what_was_fixed(self, run: Run, url: str) -> None:
        code, out, _ = run("doctor", url, "--fix", "--yes", "--json")
        line, _ = map(json.loads, out.splitlines())
        assert (code, line["code"], line["fixed"]) == (0, "locks", True)
        assert line["detail"] == "deleted 1 lock without an owner"


@pytest.mark.parametrize("width", [80, 120])
def test_lines_fit_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int) -> None:
    long = "maxmemory-policy is allkeys-lru; " * 6
    one = Finding("eviction", Severity.CRITICAL, "the server deletes keys", long, long, long, queue="emails\x1b[2J")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    terminal = console()
    monkeypatch.setattr(findingview, "console", lambda: terminal)
    findingview.show(Examination("bullmq+redis://host", [one], "Valkey 9", ["emails"], ["clock"]))
    shown = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert "emails\\x1b[2J" in shown
    lines = shown.splitlines()
    assert max(map(len, lines)) <= width
    assert all(line.startswith(("critical ", "evidence ", "risk ", "remedy ", " " * 10)) for line in lines[2:-2]), shown
