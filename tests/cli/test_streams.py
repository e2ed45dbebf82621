"""Commands whose streams are closed, have a small encoding, or lose their reader on the way."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from jobwire import NewJob

Call = Callable[..., Any]


def test_all_jobs_are_added_if_the_reader_of_their_ids_goes_away(
    call: Call, on_queue: Call, jobwire_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as nobody_reads:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{number}\n" for number in range(1200))))
        monkeypatch.setattr("sys.stdout", nobody_reads)
        said = call("add", "emails", "-", "--lines", "--url", jobwire_url)
    assert said.code == 141, said
    assert said.err == "the reader of the output has gone; added 1,200 jobs, all that were given\n"
    assert sum(on_queue(lambda queue: queue.counts()).values()) == 1200


def test_an_add_that_ends_on_the_way_says_how_many_jobs_were_added(
    call: Call, jobwire_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobwire import JobwireError, Queue

    real, steps = Queue.add_many, []

    async def fails_later(queue: Queue, jobs: Any) -> Any:
        steps.append(len(jobs))
        if len(steps) > 1:
            raise JobwireError("the store is full")
        return await real(queue, jobs)

    monkeypatch.setattr(Queue, "add_many", fails_later)
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n" * 600))
    said = call("add", "emails", "-", "--lines", "--url", jobwire_url)
    assert said.code == 1
    assert said.err == "the first 500 of 600 jobs were added\njobwire: the store is full\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("add", "emails", "-"), 1, "the job's data is not JSON"),
        (("add", "emails", "-", "--lines"), 4, "stdin has no lines"),
        (("remove", "emails", "--state", "waiting", "--all"), 2, "stdin is not a terminal"),
    ],
)
def test_a_closed_stdin_is_empty(
    *, call: Call, jobwire_url: str, arguments: tuple[str, ...], code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("add", "emails", "1", "--url", jobwire_url)
    monkeypatch.setattr("sys.stdin", None)
    said = call(*arguments, "--url", jobwire_url)
    assert (said.code, said.out) == (code, ""), said
    assert words in said.err


def test_a_command_runs_with_all_streams_closed(environment: dict[str, str]) -> None:
    line = f"exec {sys.executable} -m jobwire add emails 1 --url memory: <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", line], check=False, env=environment, timeout=60).returncode == 0


def test_characters_that_the_encoding_lacks_are_printed_as_escapes(
    call: Call, jobwire_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii"))
    call("add", "emails", '"✓"', "--url", jobwire_url)
    said = call("jobs", "emails", "--url", jobwire_url)
    assert (said.code, said.err) == (0, ""), said
    assert b"\\u2713" in written.getvalue()


def test_a_name_with_a_line_break_is_one_line(call: Call, on_every: Call, jobwire_url: str) -> None:
    on_every(jobwire_url, lambda queue: queue.add(1), queue="two\nlines")
    assert call("queues", "--names", "--url", jobwire_url).out == "two\\nlines\n"
    assert len(call("queues", "--url", jobwire_url).out.splitlines()) == 2


def test_bytes_that_are_not_utf_8_are_refused_on_the_command_line_as_on_stdin(call: Call, jobwire_url: str) -> None:
    said = call("add", "emails", '"\udcff"', "--url", jobwire_url)
    assert (said.code, said.out, said.err) == (1, "", "jobwire: the job's data is not JSON: it is not UTF-8\n")
    assert call("queues", "--url", jobwire_url).code == 4


def test_a_full_page_without_a_next_one_does_not_promise_more(call: Call, on_every: Call, every_url: str) -> None:
    on_every(every_url, lambda queue: queue.add_many([NewJob(1), NewJob(2), NewJob(3)]))
    for options in ((), ("--reverse",), ("--skip", "1", "--limit", "2")):
        assert call("jobs", "emails", "--limit", "3", *options, "--url", every_url).err == ""
    assert "the first 2; there are more" in call("jobs", "emails", "--limit", "2", "--url", every_url).err
