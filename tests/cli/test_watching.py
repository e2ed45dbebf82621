"""wait, logs, events, workers, counts --watch, top: what they show and how they end."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from jobwire import ActiveJob, Feature, Queue, State, Worker

Call = Callable[..., Any]


async def _handle(job: ActiveJob) -> Any:
    await job.log(f"working on {job.data}")
    if job.data == "bad":
        raise ValueError("no such thing")
    return {"done": job.data}


def _work(data: Any) -> Callable[[Queue], Any]:
    async def run(queue: Queue) -> str:
        async with Worker(queue.name, _handle, queue.connection):
            job = await queue.add(data)
            while not (found := await queue.get(job.id)) or not found.state.finished:
                await asyncio.sleep(0.01)
        return job.id

    return run


def test_wait_prints_the_result_or_says_why_there_is_none(call: Call, on_every: Call, every_url: str) -> None:
    good, bad = on_every(every_url, _work("good")), on_every(every_url, _work("bad"))
    assert call("wait", "emails", good, "--timeout", "30s", "--url", every_url).json == {"done": "good"}
    failed = call("wait", "emails", bad, "--timeout", "30s", "--url", every_url)
    assert (failed.code, failed.out) == (1, ""), failed
    assert "no such thing" in failed.err or "failed" in failed.err
    waiting = call("add", "emails", "1", "--url", every_url).out.strip()
    late = call("wait", "emails", waiting, "--timeout", "0.1", "--url", every_url)
    assert (late.code, late.out) == (1, ""), late


def test_the_log_of_a_job_is_printed_and_followed_to_its_end(call: Call, on_every: Call, every_url: str) -> None:
    job = on_every(every_url, _work("good"))
    assert call("logs", "emails", job, "--url", every_url).out == "working on good\n"
    assert call("logs", "emails", job, "-f", "--json", "--url", every_url).lines == ["working on good"]


def test_new_lines_of_a_log_are_followed(start: Call, on_queue: Call, jobwire_url: str) -> None:
    job = on_queue(lambda queue: queue.add(1))
    on_queue(lambda queue: queue.admin.log(job.id, "first"))
    following = start("logs", "emails", job.id, "-f", "--every", "0.05", "--url", jobwire_url)
    assert following.stdout.readline() == "first\n"
    on_queue(lambda queue: queue.admin.log(job.id, "second"))
    assert following.stdout.readline() == "second\n"
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=60)
    assert (following.returncode, out, err) == (0, "", "")


def test_past_events_are_shown_or_the_protocol_keeps_none(call: Call, on_every: Call, every_url: str) -> None:
    async def features(queue: Queue) -> list[bool]:
        return [queue.capabilities.has(one) for one in (Feature.EVENTS, Feature.EVENT_CONTROL)]

    on_every(every_url, _work("good"))
    has_events, keeps_them = on_every(every_url, features)
    said = call("events", "emails", "--json", "--url", every_url)
    if keeps_them:
        kinds = [event["kind"] for event in said.lines]
        assert kinds[-1] == "completed" or "completed" in kinds, kinds
        [last] = call("events", "emails", "--last", 1, "--json", "--url", every_url).lines
        assert last == said.lines[-1]
        assert "completed" in call("events", "emails", "--url", every_url).out
    else:
        assert (said.code, said.out) == (2 if has_events else 1, ""), said
        assert ("use -f" if has_events else "has no event stream") in said.err


def test_events_are_followed_until_ctrl_c(start: Call, call: Call, on_queue: Call, jobwire_url: str) -> None:
    on_queue(lambda queue: queue.admin.publish("hello", {"n": "1"}))
    following = start("events", "emails", "-f", "--last", 1, "--json", "--url", jobwire_url)
    first = json.loads(following.stdout.readline())
    assert (first["native_type"], first["data"]) == ("hello", {"n": "1"})
    on_queue(lambda queue: queue.admin.publish("again"))
    assert json.loads(following.stdout.readline())["native_type"] == "again"
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=60)
    assert (following.returncode, out, err) == (0, "", "")


def test_workers_are_listed_or_the_protocol_has_no_list(call: Call, on_every: Call, every_url: str) -> None:
    async def look(queue: Queue) -> tuple[bool, Any]:

        await queue.add(1, delay=600)
        has = queue.capabilities.has(Feature.WORKERS)
        async with Worker("emails", _handle, queue.connection, name="postman"):
            while has and not await queue.admin.workers():
                await asyncio.sleep(0.01)
            return has, await asyncio.to_thread(call, "workers", "emails", "--url", every_url)

    has, said = on_every(every_url, look)
    if has:
        assert said.code == 0, said
        assert len(said.out.splitlines()) == 2, said.out
    else:
        assert (said.code, said.out) == (1, ""), said
        assert "has no list of workers" in said.err
        return
    assert call("workers", "emails", "--url", every_url).code == 4


def test_counts_are_watched_as_lines(start: Call, on_queue: Call, jobwire_url: str) -> None:
    on_queue(lambda queue: queue.add(1))
    watching = start("counts", "emails", "--watch", "--every", "0.05", "--json", "--url", jobwire_url)
    assert json.loads(watching.stdout.readline())["waiting"] == 1
    on_queue(lambda queue: queue.add(2))
    while json.loads(watching.stdout.readline())["waiting"] != 2:
        pass
    watching.send_signal(signal.SIGINT)
    _, err = watching.communicate(timeout=60)
    assert (watching.returncode, err) == (0, "")


def test_top_prints_one_frame_into_a_pipe(call: Call, on_every: Call, every_url: str) -> None:
    on_every(every_url, lambda queue: queue.add(1))
    shown = call("top", "--every", "0.1", "--url", every_url)
    heading, row = shown.out.splitlines()
    assert heading.split()[:4] == ["queue", "in/s", "out/s", "fail/s"]
    assert row.split()[:5] == ["emails", "0", "0", "0", "1"], shown.out
    [figures] = call("top", "emails", "--every", "0.1", "--json", "--url", every_url).lines
    assert figures["counts"]["waiting"] == 1
    assert figures["per_second"] == {"added": 0, "finished": 0, "failed": 0}


def test_top_counts_jobs_that_come_and_go(call: Call, on_queue: Call, jobwire_url: str) -> None:
    from jobwire import connect
    from jobwire.cli.topview import Watch

    async def look(queue: Queue) -> Any:
        async with connect(jobwire_url) as connection:
            watch = Watch(connection, [])
            await watch.look()
            await queue.add("good")
            bad = await queue.add("bad")
            async with Worker("emails", _handle, queue.connection):
                while (await queue.counts())[State.COMPLETED] < 1 or (await queue.get(bad.id)).state != "failed":
                    await asyncio.sleep(0.01)
            [seen] = await watch.look()
            return seen

    on_queue(lambda queue: queue.add("good", delay=600))
    seen = on_queue(look)
    assert seen.added == seen.finished > 0
    assert seen.failed == pytest.approx(seen.finished / 2)


@pytest.mark.parametrize("end", ["q", "ctrl-c"])
def test_top_at_a_terminal_ends_with_q_or_ctrl_c(
    on_queue: Call, jobwire_url: str, environment: dict[str, str], end: str
) -> None:
    on_queue(lambda queue: queue.add(1))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "jobwire", "top", "--every", "0.1", "--url", jobwire_url]
    screen = {**environment, "TERM": "xterm", "COLUMNS": "120", "LINES": "30"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=screen)
    os.close(theirs)
    closing = threading.Timer(90, process.kill)
    closing.start()
    try:
        shown = b""
        while b"emails" not in shown:
            assert select.select([ours], [], [], 60)[0], shown
            shown += os.read(ours, 10_000)
        if end == "q":
            os.write(ours, b"q")
        else:
            process.send_signal(signal.SIGINT)
        while process.poll() is None:  # what it still writes must be read, or it waits
            if select.select([ours], [], [], 0.05)[0]:
                try:
                    shown += os.read(ours, 10_000)
                except OSError:  # the terminal is closed at the other end
                    break
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    finally:
        closing.cancel()
        os.close(ours)
        process.communicate()
    assert b"fail/s" in shown
