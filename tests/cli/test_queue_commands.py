"""add, counts, jobs, job: what they write and what they show."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from jobwire import ActiveJob, Queue, Unrecoverable, Worker

Call = Callable[..., Any]


def test_an_added_job_is_shown_whole(call: Call, jobwire_url: str) -> None:
    said = call("add", "emails", '{"to": "a@example.com"}', "--name", "welcome", "--url", jobwire_url)
    assert (said.code, said.out, said.err) == (0, "1\n", "")

    shown = call("job", "emails", "1", "--url", jobwire_url, "--json").json
    expected = {"id": "1", "name": "welcome", "state": "waiting", "data": {"to": "a@example.com"}, "logs": []}
    assert {key: shown[key] for key in expected} == expected


def test_every_option_of_add_reaches_the_job(call: Call, jobwire_url: str) -> None:
    options = ("--id", "mail-7", "--delay", 3600, "--priority", 5, "--attempts", 4)
    added = call("add", "emails", "[1, null]", *options, "--url", jobwire_url, "--json").json
    assert added["id"] == "mail-7"

    shown = call("job", "emails", "mail-7", "--url", jobwire_url, "--json").json
    expected = {"state": "delayed", "priority": 5, "attempts": 4, "data": [1, None], "name": "emails"}
    assert {key: shown[key] for key in expected} == expected


def test_a_job_whose_id_is_taken_is_reported_as_not_added(call: Call, jobwire_url: str) -> None:
    call("add", "emails", "1", "--id", "mail-7", "--url", jobwire_url)
    again = call("add", "emails", "2", "--id", "mail-7", "--url", jobwire_url)
    assert (again.code, again.out) == (0, "mail-7\n")
    assert again.err.startswith("not added: job mail-7 was there first"), again
    as_json = call("add", "emails", "2", "--id", "mail-7", "--url", jobwire_url, "--json").json
    assert as_json["add_status"] == "duplicate"
    assert call("counts", "emails", "--url", jobwire_url, "--json").json["waiting"] == 1


def test_a_dash_reads_the_data_from_stdin(call: Call, jobwire_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"long": "text"}\n'))
    call("add", "emails", "-", "--url", jobwire_url)
    assert call("job", "emails", "1", "--url", jobwire_url, "--json").json["data"] == {"long": "text"}


def test_counts_are_shown_by_state(call: Call, jobwire_url: str) -> None:
    for delay in (0, 0, 60):
        call("add", "emails", "1", "--delay", delay, "--url", jobwire_url)
    found = call("counts", "emails", "--url", jobwire_url, "--json").json
    assert (found["waiting"], found["delayed"], sum(found.values())) == (2, 1, 3)

    lines = call("counts", "emails", "--url", jobwire_url).out.splitlines()
    assert [line.split() for line in lines if line.split()[1] != "0"] == [
        ["waiting", "2"],
        ["delayed", "1"],
        ["all", "3"],
    ]


def test_jobs_come_in_the_order_in_which_they_would_run(call: Call, jobwire_url: str) -> None:
    for number in range(4):
        call("add", "emails", number, "--url", jobwire_url)
    listed = call("jobs", "emails", "--url", jobwire_url, "--json").lines
    assert [job["data"] for job in listed] == [0, 1, 2, 3]

    first = call("jobs", "emails", "--limit", 2, "--url", jobwire_url)
    assert len(first.out.splitlines()) == 3, first.out
    assert "there are more" in first.err


def test_jobs_are_skipped_and_listed_in_the_opposite_order(call: Call, jobwire_url: str) -> None:
    for number in range(5):
        call("add", "emails", number, "--url", jobwire_url)

    def listed(*options: object) -> list[int]:
        return [job["data"] for job in call("jobs", "emails", *options, "--url", jobwire_url, "--json").lines]

    assert listed("--skip", 3) == [3, 4]
    assert listed("--reverse") == [4, 3, 2, 1, 0]
    assert listed("--reverse", "--skip", 1, "--limit", 2) == [3, 2]

    some = call("jobs", "emails", "--skip", 1, "--limit", 2, "--url", jobwire_url)
    assert "jobs 2 to 3; there are more (--limit, --skip 3)" in some.err
    none = call("jobs", "emails", "--skip", 5, "--url", jobwire_url)
    assert (none.code, none.err) == (4, "jobwire: there are no waiting jobs in emails after the first 5\n")


def test_a_negative_skip_is_refused(call: Call, jobwire_url: str) -> None:
    refused = call("jobs", "emails", "--skip", -1, "--url", jobwire_url)
    assert refused.code != 0
    assert "skip" in refused.err


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_queue_without_such_jobs_says_so(call: Call, jobwire_url: str, form: tuple[str, ...]) -> None:
    call("add", "emails", "1", "--url", jobwire_url)
    said = call("jobs", "emails", "--state", "failed", "--url", jobwire_url, *form)
    assert (said.code, said.out, said.err) == (4, "", "jobwire: there are no failed jobs in emails\n")


def test_a_failed_job_is_shown_with_its_log_and_its_stack(call: Call, jobwire_url: str, on_queue: Call) -> None:
    async def refuse(job: ActiveJob) -> None:
        await job.log("looking for an address")
        raise Unrecoverable("there is no address")

    async def fail_one(queue: Queue) -> None:
        async with Worker("emails", refuse, queue.connection):
            job = await queue.add({"to": None})
            with pytest.raises(Exception, match="there is no address"):
                await job.wait(timeout=30)

    on_queue(fail_one)
    shown = call("job", "emails", "1", "--url", jobwire_url)
    assert shown.code == 0
    for part in ("failed", "there is no address", "looking for an address", "raise Unrecoverable", "1 of 1"):
        assert part in shown.out, shown.out
    [listed] = call("jobs", "emails", "--state", "failed", "--url", jobwire_url, "--json").lines
    assert (listed["error"], listed["attempts_made"]) == ("there is no address", 1)


def test_what_a_job_holds_cannot_steer_the_terminal(call: Call, jobwire_url: str) -> None:
    evil = "\x1b[2Jgone"
    call("add", "emails", json.dumps({"text": evil, "c1": "\x9b2J"}), "--name", evil, "--url", jobwire_url)
    for said in (call("jobs", "emails", "--url", jobwire_url), call("job", "emails", "1", "--url", jobwire_url)):
        assert said.code == 0
        assert not {"\x1b", "\x9b"} & set(said.out), repr(said.out)
        assert "[2Jgone" in said.out


def test_brackets_in_a_job_are_text_and_not_markup(call: Call, jobwire_url: str) -> None:
    call("add", "emails", '"[bold]loud[/bold]"', "--name", "[red]", "--url", jobwire_url)
    said = call("job", "emails", "1", "--url", jobwire_url)
    assert '"[bold]loud[/bold]"' in said.out
    assert "[red]" in said.out


def test_the_environment_names_the_place(call: Call, jobwire_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBWIRE_URL", jobwire_url)
    call("add", "emails", "1")
    assert call("counts", "emails", "--url", jobwire_url, "--json").json["waiting"] == 1


@pytest.mark.slow
def test_without_a_place_an_embedded_server_is_used_and_said_to_be(spawn: Call) -> None:
    added = spawn("add", "emails", "1")
    assert (added.code, added.out) == (0, "1\n"), added
    assert added.err == "embedded server, its data is in ./.jobwire\n"
    counts = spawn("counts", "emails", "--json")
    assert json.loads(counts.out)["waiting"] == 1
