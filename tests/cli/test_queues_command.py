"""queues: all queues of a store. A queue that is not there is refused, with names that are near."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import redis

from jobwire import NewJob, Queue, urls

Call = Callable[..., Any]


def test_every_queue_is_listed_with_its_figures(call: Call, on_every: Call, every_url: str) -> None:
    async def fill(queue: Queue) -> None:
        await queue.add_many([NewJob(1), NewJob(2), NewJob(3, delay=600)])

    async def pause(queue: Queue) -> None:
        await queue.add(1)
        await queue.admin.pause()

    on_every(every_url, fill, "emails")
    on_every(every_url, pause, "reports")
    emails, reports = call("queues", "--url", every_url, "--json").lines
    assert (emails["queue"], emails["counts"]["waiting"], emails["counts"]["delayed"]) == ("emails", 2, 1)
    assert emails["oldest_waiting_seconds"] >= 0
    assert (emails["paused"], reports["paused"]) == (False, True)

    shown = call("queues", "--url", every_url)
    heading, first, second = shown.out.splitlines()
    assert "oldest waiting" in heading
    assert first.split()[:3] == ["emails", "2", "1"], shown.out
    assert second.split()[0] == "reports"
    assert second.split()[-1] == "paused"
    assert call("queues", "--names", "--url", every_url).out == "emails\nreports\n"


def test_the_oldest_waiting_job_counts_also_if_it_runs_last(call: Call, jobwire_url: str, on_queue: Call) -> None:
    async def fill(queue: Queue) -> str:
        old = await queue.add(1, priority=5)
        await queue.add(2)
        found = await queue.get(old.id)
        assert found is not None
        assert found.created_at is not None
        return found.created_at.isoformat()

    oldest = on_queue(fill)
    [figures] = call("queues", "--url", jobwire_url, "--json").lines
    assert figures["oldest_waiting"] == oldest


def test_a_queue_that_can_not_be_read_does_not_hide_the_others(call: Call, jobwire_url: str) -> None:
    call("add", "emails", "1", "--url", jobwire_url)
    call("add", "strange", "1", "--url", jobwire_url)
    address = urls.parse(jobwire_url)
    with redis.Redis.from_url(address.driver_url) as server:
        server.set(f"{address.options['prefix']}:strange:wait", "not a list")
    said = call("queues", "--url", jobwire_url)
    assert said.code == 1, said
    assert [line.split()[:2] for line in said.out.splitlines()[1:]] == [["emails", "1"], ["strange", "–"]]
    assert said.err.startswith("jobwire: queue strange could not be read: "), said
    as_json = call("queues", "--json", "--url", jobwire_url).out.splitlines()
    assert [json.loads(line)["counts"].get("waiting") for line in as_json] == [1, None]


def test_a_store_without_queues(call: Call, every_url: str) -> None:
    said = call("queues", "--url", every_url)
    assert (said.code, said.out) == (4, "")
    assert said.err.startswith("jobwire: there are no queues in "), said


COMMANDS = (
    ("counts",), ("jobs",), ("job", "1"), ("wait", "1"), ("logs", "1"),
    ("retry", "1"), ("remove", "--all"), ("promote", "1"),
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_mistyped_queue_is_not_made_but_near_ones_are_named(
    call: Call, jobwire_url: str, command: tuple[str, ...]
) -> None:
    for name in ("emails", "reports"):
        call("add", name, "1", "--url", jobwire_url)
    said = call(command[0], "emial", *command[1:], "--url", jobwire_url)
    assert (said.code, said.out) == (4, ""), said
    assert "there is no queue 'emial'" in said.err
    assert said.err.endswith("; did you mean emails?\n"), said
    assert call("queues", "--names", "--url", jobwire_url).out == "emails\nreports\n"


def test_a_queue_that_is_not_there_on_any_store(call: Call, every_url: str) -> None:
    call("add", "emails", "1", "--url", every_url)
    said = call("counts", "email", "--url", every_url)
    assert said.code == 4, said
    assert said.err.endswith("did you mean emails?\n"), said
