"""`jobwire worker` in several processes: they are replaced, stopped and reloaded, and no job is lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobwire import NewJob, State

Call = Callable[..., Any]
pytestmark = pytest.mark.slow

SHOP = """
import asyncio, pathlib
from jobwire import Worker

async def handle(job):
    await asyncio.sleep(0.02)
    return job.data

async def slow(job):
    while not pathlib.Path("go-on").exists():
        await asyncio.sleep(0.02)
    return "finished"

def worker_of(url, **options):
    return Worker("emails", handle, url, lease=1.0, recover_every=0.2, **options)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


class Log:
    """The stderr of a supervisor, read line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []

    def until(self, pattern: str, times: int = 1) -> list[str]:
        """Read on until so many lines match; what their last groups matched."""
        assert self.process.stderr is not None
        found: list[str] = []
        for line in self.process.stderr:
            self.lines.append(line)
            if match := re.search(pattern, line):
                found.append(match[match.lastindex or 0])
                if len(found) == times:
                    return found
        raise AssertionError(f"{times} times {pattern!r} is not in the log:\n{''.join(self.lines)}")

    def pids(self, number: int) -> list[int]:
        return [int(pid) for pid in self.until(r"process \d has pid (\d+)", number)]

    def end(self) -> int:
        """Read to the end; the exit code."""
        assert self.process.stderr is not None
        self.lines += list(self.process.stderr)
        return self.process.wait(timeout=60)


def is_alive(pid: int) -> bool:
    try:
        return not re.search(r"\) [ZX]", Path(f"/proc/{pid}/stat").read_text())
    except FileNotFoundError:
        return False


def test_a_killed_process_is_replaced_and_no_job_is_lost(
    start: Call, shop: Path, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    (shop / "shop.py").write_text(SHOP + f"worker = worker_of({jobwire_url!r})\n")
    on_queue(lambda queue: queue.add_many([NewJob(number) for number in range(300)]))
    supervisor = start("worker", "shop:worker", "--processes", "2")
    log = Log(supervisor)
    first, _ = log.pids(2)
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.COMPLETED] > 5)
    os.kill(first, signal.SIGKILL)
    log.until(rf"pid {first}\) was killed by SIGKILL; starting it again")
    [third] = log.pids(1)
    assert third != first
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.COMPLETED] == 300, within=60)
    supervisor.send_signal(signal.SIGTERM)
    assert log.end() == 0, log.lines


@pytest.mark.parametrize("as_a_service_manager", [False, True])
def test_sigterm_lets_the_jobs_of_all_processes_finish(
    *, start: Call, shop: Path, jobwire_url: str, on_queue: Call, eventually: Call, as_a_service_manager: bool
) -> None:
    """A service manager may send the signal to every process by itself: that is not a second signal for any of them."""
    on_queue(lambda queue: queue.add_many([NewJob(number) for number in range(6)]))
    supervisor = start("worker", "shop:slow", "--queue", "emails", "--processes", "2", "--url", jobwire_url)
    log = Log(supervisor)
    pids = log.pids(2)
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.ACTIVE] == 2)
    supervisor.send_signal(signal.SIGTERM)
    if as_a_service_manager:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
    log.until("stopping: 1 job still running", 2)
    (shop / "go-on").touch()
    assert log.end() == 0, log.lines
    counts = on_queue(lambda queue: queue.counts())
    assert (counts[State.COMPLETED], counts[State.ACTIVE], counts[State.WAITING]) == (2, 0, 4)


def test_a_second_signal_releases_the_jobs_of_all_processes(
    start: Call, shop: Path, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    on_queue(lambda queue: queue.add_many([NewJob(number) for number in range(2)]))
    supervisor = start("worker", "shop:slow", "--queue", "emails", "--processes", "2", "--url", jobwire_url)
    log = Log(supervisor)
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.ACTIVE] == 2)
    supervisor.send_signal(signal.SIGINT)
    log.until("stopping: 1 job still running", 2)
    supervisor.send_signal(signal.SIGINT)
    assert log.end() == 0, log.lines
    counts = on_queue(lambda queue: queue.counts())
    assert (counts[State.WAITING], counts[State.ACTIVE]) == (2, 0)


def test_the_processes_stop_when_the_supervisor_is_killed(
    start: Call, shop: Path, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    supervisor = start("worker", "shop:slow", "--queue", "emails", "--processes", "2", "--url", jobwire_url)
    log = Log(supervisor)
    pids = log.pids(2)
    on_queue(lambda queue: queue.add_many([NewJob(number) for number in range(2)]))
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.ACTIVE] == 2)
    supervisor.kill()
    log.until("stopping: 1 job still running", 2)
    (shop / "go-on").touch()
    eventually(lambda: not any(map(is_alive, pids)))
    assert on_queue(lambda queue: queue.counts())[State.COMPLETED] == 2


def test_a_usage_error_ends_the_supervisor_with_its_code(spawn: Call, shop: Path) -> None:
    said = spawn("worker", "shop:handel", "--queue", "emails", "--processes", "2", "--url", "memory:")
    assert said.code == 2
    assert "did you mean handle?" in said.err
    assert "can't be started with these arguments" in said.err


def test_processes_that_share_a_worker_id_are_refused(spawn: Call, shop: Path) -> None:
    (shop / "shop.py").write_text(SHOP + "worker = worker_of('memory:', worker_id='shop-1')\n")
    said = spawn("worker", "shop:worker", "--processes", "2")
    assert said.code == 2
    assert "'shop-1'" in said.err


def test_a_process_that_always_dies_at_its_start_ends_the_supervisor(spawn: Call, shop: Path) -> None:
    (shop / "shop.py").write_text("raise RuntimeError('the printer is on fire')\n")
    said = spawn("worker", "shop:handle", "--queue", "emails", "--processes", "1", "--url", "memory:")
    assert said.code == 1
    assert said.err.count("RuntimeError: the printer is on fire") == 5
    assert "the last of 5 ends at its start; giving up" in said.err


def test_changed_code_is_loaded_and_a_syntax_error_is_survived(
    start: Call, shop: Path, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    handler = shop / "shop.py"

    def result_of_a_job() -> str:
        job = on_queue(lambda queue: queue.add(1))
        return eventually(lambda: on_queue(lambda queue: queue.get(job.id)).result)

    handler.write_text("def handle(job): return 'first'\n")
    (shop / ".hidden").mkdir()
    supervisor = start("worker", "shop:handle", "--queue", "emails", "--reload", "--url", jobwire_url)
    log = Log(supervisor)
    log.pids(1)
    assert result_of_a_job() == "first"
    (shop / ".hidden" / "other.py").write_text("")
    handler.write_text("def handle(job): return 'the second'\n")
    log.until("shop.py changed: restarting")
    log.pids(1)
    assert result_of_a_job() == "the second"
    handler.write_text("def handle(job) return 'third'\n")
    log.until("it is started again when a file changes")
    assert supervisor.poll() is None
    handler.write_text("def handle(job): return 'the fourth'\n")
    log.pids(1)
    assert result_of_a_job() == "the fourth"
    supervisor.send_signal(signal.SIGTERM)
    assert log.end() == 0, log.lines
    assert not [line for line in log.lines if "other.py" in line]


@pytest.mark.parametrize("processes", [(), ("--processes", "2")])
def test_a_burst_ends_when_no_job_is_ready(
    spawn: Call, shop: Path, jobwire_url: str, on_queue: Call, processes: tuple[str, ...]
) -> None:
    on_queue(lambda queue: queue.add_many([NewJob(number) for number in range(20)]))
    on_queue(lambda queue: queue.add("later", delay=600))
    said = spawn("worker", "shop:handle", "--queue", "emails", "--burst", *processes, "--url", jobwire_url)
    assert said.code == 0, said.err
    counts = on_queue(lambda queue: queue.counts())
    assert (counts[State.COMPLETED], counts[State.DELAYED]) == (20, 1)
