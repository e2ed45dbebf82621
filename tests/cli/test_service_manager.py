"""`jobwire worker` under a service manager: the messages that a real socket gets from a real process."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from faults.proxy import Proxy
from jobwire import State
from jobwire.cli.service_manager import ServiceManager
from jobwire.embedded import Server
from service_inbox import Inbox, opened

Call = Callable[..., Any]

WATCHDOG = 0.6

SHOP = """
import asyncio, os, pathlib, time

async def handle(job):
    return [name for name in os.environ if name.startswith(("NOTIFY", "WATCHDOG"))]

async def slow(job):
    while not pathlib.Path("go-on").exists():
        await asyncio.sleep(0.02)

async def blocks_the_loop(job):
    pathlib.Path("blocked").write_text(str(os.getpid()))
    while not pathlib.Path("go-on").exists():
        time.sleep(0.02)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


@pytest.fixture
def inbox(unique: str, environment: dict[str, str]) -> Iterator[Inbox]:
    """An abstract socket, and no watchdog."""
    yield from opened(environment, f"@{unique}")


@pytest.fixture
def notified(tmp_path: Path, environment: dict[str, str]) -> Iterator[Inbox]:
    environment["WATCHDOG_USEC"] = str(round(WATCHDOG * 1_000_000))
    yield from opened(environment, str(tmp_path / "notify"))


@pytest.mark.slow
async def test_ready_comes_after_the_store_answers_and_not_before(
    start: Call, shop: Path, notified: Inbox, jobwire_valkey: Server, unique: str
) -> None:
    async with Proxy(urlsplit(jobwire_valkey.url).port or 0) as proxy:
        proxy.swallow()
        url = f"bullmq+{proxy.through(jobwire_valkey.url)}?prefix={unique}"
        start("worker", "shop:handle", "--queue", "emails", "--wait-for-store", "60", "--url", url)
        await asyncio.to_thread(notified.until, "STATUS=connecting to the store")
        await asyncio.to_thread(notified.until, "WATCHDOG=1")
        await asyncio.to_thread(notified.until, "WATCHDOG=1")
        assert "READY=1" not in notified.seen
        proxy.flow()
        await asyncio.to_thread(notified.until, "READY=1")


@pytest.mark.slow
def test_a_worker_is_ready_and_reports_what_it_does_and_that_it_stops(
    *, start: Call, shop: Path, inbox: Inbox, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    worker = start("worker", "shop:slow", "--queue", "emails", "--url", jobwire_url)
    inbox.until("READY=1")
    on_queue(lambda queue: queue.add(1))
    inbox.until("STATUS=1 job running, 0 completed, 0 failed")
    worker.send_signal(signal.SIGTERM)
    inbox.until("STOPPING=1")
    assert worker.poll() is None  # its job still runs
    (shop / "go-on").touch()
    assert worker.wait(timeout=30) == 0
    inbox.drain()
    assert (inbox.seen.count("READY=1"), inbox.seen.count("STOPPING=1"), inbox.seen.count("WATCHDOG=1")) == (1, 1, 0)
    assert on_queue(lambda queue: queue.counts())[State.COMPLETED] == 1


@pytest.mark.slow
def test_a_blocked_event_loop_gives_no_signs_of_life(
    *, start: Call, shop: Path, notified: Inbox, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    start("worker", "shop:blocks_the_loop", "--queue", "emails", "--url", jobwire_url)
    notified.until("READY=1")
    notified.until("WATCHDOG=1")
    notified.until("WATCHDOG=1")
    on_queue(lambda queue: queue.add(1))
    eventually((shop / "blocked").exists)
    notified.drain()
    assert notified.next(2 * WATCHDOG) == []
    (shop / "go-on").touch()
    notified.until("WATCHDOG=1")


@pytest.mark.slow
def test_a_supervisor_reports_for_all_of_its_processes_and_replaces_a_blocked_one(
    *, start: Call, shop: Path, notified: Inbox, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    arguments = ("--queue", "emails", "--processes", "2", "--url", jobwire_url)
    supervisor = start("worker", "shop:blocks_the_loop", *arguments)
    notified.until("READY=1")
    assert "STATUS=2 of 2 processes work" not in notified.seen  # READY comes first
    notified.until("STATUS=2 of 2 processes work")
    on_queue(lambda queue: queue.add(1))
    blocked = int(eventually(lambda: (shop / "blocked").exists() and (shop / "blocked").read_text()))
    notified.until("STATUS=1 of 2 processes work")
    eventually(lambda: not Path(f"/proc/{blocked}").exists())
    notified.until("STATUS=2 of 2 processes work")
    (shop / "go-on").touch()
    supervisor.send_signal(signal.SIGTERM)
    notified.until("STOPPING=1")
    _, log = supervisor.communicate(timeout=30)
    assert supervisor.returncode == 0, log
    assert "has given no sign of life for 0.6 s" in log
    assert "was killed by SIGKILL; starting it again" in log
    notified.drain()
    assert (notified.seen.count("READY=1"), notified.seen.count("STOPPING=1")) == (1, 1)
    assert notified.seen.count("WATCHDOG=1") > 2


@pytest.mark.slow
@pytest.mark.parametrize("processes", [(), ("--processes", "1")])
def test_what_a_handler_starts_can_not_speak_for_the_service(
    *, start: Call, shop: Path, notified: Inbox, jobwire_url: str, on_queue: Call, processes: tuple[str, ...]
) -> None:
    on_queue(lambda queue: queue.add(1))
    worker = start("worker", "shop:handle", "--queue", "emails", "--burst", "--url", jobwire_url, *processes)
    notified.until("STOPPING=1")
    assert worker.wait(timeout=30) == 0
    [job] = on_queue(lambda queue: queue.jobs(State.COMPLETED))
    assert job.result == []


def test_without_a_service_manager_there_is_none() -> None:
    assert ServiceManager.from_environment({}) is None
    assert ServiceManager.from_environment({"WATCHDOG_USEC": "1000000"}) is None


def test_a_socket_that_is_not_there_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    assert ServiceManager.from_environment({"NOTIFY_SOCKET": "/nowhere/notify"}) is None
    assert "/nowhere/notify can't be used" in caplog.text


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "9" * 400}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_is_meant_for_this_process_only(
    tmp_path: Path, variables: dict[str, str], seconds: float | None
) -> None:
    inbox = Inbox(str(tmp_path / "notify"))
    given = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "HOME": "/", **variables}
    manager = ServiceManager.from_environment(given)
    assert manager is not None
    assert (manager.watchdog, given) == (seconds, {"HOME": "/"})
    manager.status("all\nis well")
    assert inbox.next(5) == ["STATUS=all is well"]
    inbox.socket.close()
    manager.send("READY=1")  # dropped: the socket is closed
    manager.close()
