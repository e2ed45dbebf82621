"""retry, remove, promote, cancel: by id, by filters; what they ask, refuse and report."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from jobwire import NewJob, Queue, State

Call = Callable[..., Any]


def _numbers(on_every: Call, url: str) -> dict[str, int]:
    found = on_every(url, lambda queue: queue.counts())
    return {state.value: number for state, number in found.items() if number}


def test_failed_jobs_are_retried_by_their_error(call: Call, on_every: Call, fail: Call, every_url: str) -> None:
    on_every(every_url, lambda queue: fail(queue, ["connection refused", "no address", "connection refused by b"]))
    said = call("retry", "emails", "--error", "Connection REFUSED", "--yes", "--url", every_url)
    assert (said.code, said.out) == (0, "retried 2 jobs of emails\n"), said
    assert _numbers(on_every, every_url) == {"waiting": 2, "failed": 1}
    again = call("retry", "emails", "--error", "connection refused", "--yes", "--url", every_url)
    assert (again.code, again.out) == (4, "")
    assert "there are no failed jobs in emails that match" in again.err


def test_the_class_of_an_error_counts_as_its_text(call: Call, on_queue: Call, fail: Call, jobwire_url: str) -> None:
    on_queue(lambda queue: fail(queue, ["connection refused", "no address"]))
    said = call("retry", "emails", "--error", "ConnectionError", "--yes", "--json", "--url", jobwire_url)
    assert said.json == {"matched": 1, "done": 1}
    [left] = call("jobs", "emails", "--state", "failed", "--json", "--url", jobwire_url).lines
    assert left["error"] == "no address"


def test_jobs_are_chosen_by_age(call: Call, on_queue: Call, fail: Call, jobwire_url: str) -> None:
    on_queue(lambda queue: fail(queue, ["no address"]))
    none = call("retry", "emails", "--older-than", "10m", "--yes", "--url", jobwire_url)
    assert none.code == 4, none
    assert call("jobs", "emails", "--state", "failed", "--older-than", "1h", "--url", jobwire_url).code == 4
    assert (
        len(call("jobs", "emails", "--state", "failed", "--younger-than", "1h", "--json", "--url", jobwire_url).lines)
        == 1
    )
    said = call("retry", "emails", "--younger-than", "10m", "--yes", "--url", jobwire_url)
    assert said.code == 0, said


def test_jobs_are_removed_promoted_and_listed_by_name(call: Call, on_queue: Call, jobwire_url: str) -> None:
    async def fill(queue: Queue) -> None:
        names = ("welcome", "welcome", "bill")
        await queue.add_many([NewJob(1, name, delay=600) for name in names])

    on_queue(fill)
    listed = call("jobs", "emails", "--state", "delayed", "--name", "welcome", "--limit", 1, "--url", jobwire_url)
    assert len(listed.out.splitlines()) == 2
    assert "there are more" in listed.err
    assert (
        call("promote", "emails", "--name", "bill", "--yes", "--url", jobwire_url).out == "promoted 1 job of emails\n"
    )
    options = ("--state", "delayed", "--all", "--limit", 1, "--yes", "--url", jobwire_url)
    assert call("remove", "emails", *options).out == "removed 1 job of emails\n"
    found = on_queue(lambda queue: queue.counts())
    assert (found[State.WAITING], found[State.DELAYED]) == (1, 1)


def test_jobs_are_removed_and_promoted_by_id_on_every_store(call: Call, on_every: Call, every_url: str) -> None:
    async def fill(queue: Queue) -> list[str]:
        added = await queue.add_many([NewJob(1), NewJob(2), NewJob(3, delay=600)])
        return [job.id for job in added]

    first, second, late = on_every(every_url, fill)
    assert call("remove", "emails", first, second, "--url", every_url).out == "removed 2 jobs of emails\n"
    assert call("promote", "emails", late, "--url", every_url).out == "promoted 1 job of emails\n"
    assert _numbers(on_every, every_url) == {"waiting": 1}
    wrong = call("promote", "emails", late, "--url", every_url)
    assert (wrong.code, wrong.out) == (1, ""), wrong
    assert f"not promoted: job '{late}', which is not in a state that allows it" in wrong.err
    gone = call("remove", "emails", first, "--url", every_url)
    assert (gone.code, gone.out) == (4, ""), gone
    assert f"not removed: job '{first}', which is not in the queue" in gone.err


def test_jobs_are_cancelled_or_the_protocol_has_no_such_state(call: Call, on_every: Call, every_url: str) -> None:
    from jobwire import Feature

    async def fill(queue: Queue) -> bool:
        await queue.add_many([NewJob(1), NewJob(2)])
        return queue.capabilities.has(Feature.CANCEL)

    can = on_every(every_url, fill)
    said = call("cancel", "emails", "--all", "--yes", "--url", every_url)
    if can:
        assert (said.code, said.out) == (0, "cancelled 2 jobs of emails\n"), said
        assert _numbers(on_every, every_url) == {"cancelled": 2}
    else:
        assert said.code == 1, said
        assert "has no cancelled state" in said.err
        assert _numbers(on_every, every_url) == {"waiting": 2}


def test_what_will_be_done_is_shown_and_without_a_terminal_yes_is_needed(
    call: Call, on_queue: Call, jobwire_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_queue(lambda queue: queue.add_many([NewJob({"to": number}, delay=600) for number in range(5)]))
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        said = call("promote", "emails", "--all", "--url", jobwire_url)
    assert (said.code, said.out) == (2, ""), said
    assert "This will promote 5 jobs of emails, such as:" in said.err
    assert said.err.count('{"to":') == 3, said.err
    assert "nothing was done: stdin is not a terminal to ask at; add --yes to promote 5 jobs of emails" in said.err
    dry = call("promote", "emails", "--all", "--dry-run", "--json", "--url", jobwire_url)
    assert dry.json == {"matched": 5, "done": 0}
    assert on_queue(lambda queue: queue.counts())[State.DELAYED] == 5


@pytest.mark.parametrize("agrees", [True, False])
def test_at_a_terminal_it_asks(on_queue: Call, jobwire_url: str, environment: dict[str, str], agrees: bool) -> None:
    on_queue(lambda queue: queue.add_many([NewJob(number, delay=600) for number in range(2)]))
    ours, theirs = pty.openpty()
    arguments = ["promote", "emails", "--all", "--url", jobwire_url]
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        asking = subprocess.Popen(
            [sys.executable, "-m", "jobwire", *arguments],
            stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True,
        )  # fmt: skip
        os.close(theirs)
        terminal.write(b"y\n" if agrees else b"n\n")
        _, err = asking.communicate(timeout=60)
    assert asking.returncode == (0 if agrees else 1), err
    assert "Promote 2 jobs of emails? [y/N]" in err
    assert on_queue(lambda queue: queue.counts())[State.DELAYED] == (0 if agrees else 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "which jobs?"),
        (("17", "--all"), "either ids or filters"),
        (("17", "--error", "x"), "either ids or filters"),
        (("--older-than", "soon"), "write a duration such as"),
        (("--state", "active", "--all"), "must be failed or completed or cancelled"),
        (("--limit", "0", "--all"), "--limit"),
    ],
)
def test_a_choice_that_is_none_or_two(call: Call, jobwire_url: str, arguments: tuple[str, ...], words: str) -> None:
    call("add", "emails", "1", "--url", jobwire_url)
    said = call("retry", "emails", *arguments, "--url", jobwire_url)
    assert (said.code, said.out) == (2, ""), said
    assert words in said.err.replace("\n", " "), said.err


def test_an_interrupted_act_can_be_repeated(
    start: Call, call: Call, on_queue: Call, jobwire_url: str, eventually: Call
) -> None:
    """Ctrl-C arrives between two steps: what was promoted stays, and the rest is there for the next time."""
    number = 15_000
    on_queue(lambda queue: queue.add_many([NewJob(1, delay=6000)] * number))
    acting = start("promote", "emails", "--all", "--yes", "--url", jobwire_url)
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.WAITING])
    acting.send_signal(signal.SIGINT)
    out, err = acting.communicate(timeout=60)
    assert "Traceback" not in err
    found = on_queue(lambda queue: queue.counts())
    assert found[State.WAITING] + found[State.DELAYED] == number
    if acting.returncode == 130:
        done = found[State.WAITING]
        assert f"promoted {done:,} of {number:,}; repeat the command for the rest" in err
        said = call("promote", "emails", "--all", "--yes", "--url", jobwire_url)
        assert said.out == f"promoted {found[State.DELAYED]:,} jobs of emails\n"
    else:  # it was quicker than the signal
        assert out == f"promoted {number:,} jobs of emails\n"
    assert on_queue(lambda queue: queue.counts())[State.WAITING] == number
