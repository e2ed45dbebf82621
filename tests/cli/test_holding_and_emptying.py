"""pause, resume, drain, clean, obliterate."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from jobwire import ActiveJob, NewJob, Queue, State, Worker, connect
from jobwire.cli.session import tell_where

Call = Callable[..., Any]


def test_a_queue_is_paused_and_resumed(call: Call, on_every: Call, every_url: str) -> None:
    call("add", "emails", "1", "--url", every_url)
    said = [call(verb, "emails", "--url", every_url).out for verb in ("pause", "pause", "resume", "resume")]
    assert said == ["paused emails\n", "emails was paused already\n", "resumed emails\n", "emails was not paused\n"]
    assert on_every(every_url, lambda queue: queue.admin.paused()) is False


def test_waiting_jobs_are_drained(call: Call, on_every: Call, every_url: str) -> None:
    on_every(every_url, lambda queue: queue.add_many([NewJob(1), NewJob(2), NewJob(3, delay=600)]))
    said = call("drain", "emails", "--yes", "--url", every_url)
    assert (said.code, said.out) == (0, "deleted 2 waiting jobs of emails\n"), said
    said = call("drain", "emails", "--delayed", "--yes", "--url", every_url)
    assert said.out == "deleted 1 waiting and delayed job of emails\n"
    assert sum(on_every(every_url, lambda queue: queue.counts()).values()) == 0


def test_a_drain_counts_what_it_has_deleted(call: Call, on_queue: Call, jobwire_url: str) -> None:
    async def fill(queue: Queue) -> None:
        await queue.schedule("often", every=3600)
        await queue.add_many([NewJob(1), NewJob(2, delay=600)])

    on_queue(fill)
    said = call("drain", "emails", "--delayed", "--yes", "--url", jobwire_url)
    assert said.out == "deleted 2 waiting and delayed jobs of emails\n", "the next job of the schedule stays"


def test_events_are_trimmed(call: Call, on_queue: Call, jobwire_url: str) -> None:
    on_queue(lambda queue: queue.add_many([NewJob(1), NewJob(2)]))
    asked = call("events", "emails", "--trim", "0", "--url", jobwire_url)
    assert (asked.code, asked.out) == (2, ""), asked
    said = call("events", "emails", "--trim", "0", "--yes", "--json", "--url", jobwire_url)
    assert said.json["deleted"] > 0
    assert call("events", "emails", "--url", jobwire_url).code == 4
    assert call("events", "emails", "--trim", "0", "-f", "--url", jobwire_url).code == 2


def test_the_folder_of_an_embedded_server_is_told_once_in_a_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with click.Context(click.Command("drain")):
        for _ in range(2):
            tell_where(connect(f"bullmq+embedded:{tmp_path}"))
    assert capfd.readouterr().err.count("embedded server, its data is in") == 1


def test_finished_jobs_are_cleaned(call: Call, on_every: Call, every_url: str) -> None:
    async def complete(queue: Queue) -> None:
        async def handle(job: ActiveJob) -> None: ...

        jobs = await queue.add_many([NewJob(1), NewJob(2)])
        async with Worker("emails", handle, queue.connection):
            for job in jobs:
                await queue.wait(job.id, timeout=60)

    on_every(every_url, complete)
    young = call("clean", "emails", "--older-than", "1h", "--yes", "--url", every_url)
    assert (young.code, young.out) == (4, ""), young
    said = call("clean", "emails", "--older-than", "0", "--yes", "--json", "--url", every_url)
    assert said.json == {"deleted": 2}
    again = call("clean", "emails", "--older-than", "0", "--yes", "--url", every_url)
    assert again.code == 4, again


def test_a_queue_is_obliterated_and_running_jobs_need_force(call: Call, on_every: Call, every_url: str) -> None:
    async def claim(queue: Queue) -> Any:
        await queue.add_many([NewJob(1), NewJob(2)])
        assert await queue.claim() is not None
        refused = await _in_thread(call, "obliterate", "emails", "--yes", "--url", every_url)
        forced = await _in_thread(call, "obliterate", "emails", "--yes", "--force", "--url", every_url)
        return refused, forced, sum((await queue.counts()).values())

    refused, forced, left = on_every(every_url, claim)
    assert (refused.code, refused.out) == (1, ""), refused
    assert "active" in refused.err
    assert (forced.code, forced.out) == (0, "deleted the queue emails with 2 jobs\n")
    assert left == 0


async def _in_thread(call: Call, *arguments: str) -> Any:
    return await asyncio.to_thread(call, *arguments)


def test_nothing_is_deleted_without_a_yes(call: Call, on_queue: Call, jobwire_url: str, monkeypatch: Any) -> None:
    on_queue(lambda queue: queue.add_many([NewJob(1), NewJob(2)]))
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        for command in (("drain",), ("obliterate",), ("clean", "--state", "waiting", "--older-than", "0")):
            said = call(command[0], "emails", *command[1:], "--url", jobwire_url)
            assert (said.code, said.out) == (2, ""), said
            assert "add --yes to delete" in said.err
    assert on_queue(lambda queue: queue.counts())[State.WAITING] == 2
