"""Child processes of executor="process": they end with their worker, and answer signals and hostile exceptions."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from awaiting import eventually
from jobwire import Connection, JobFailed, Queue, Worker
from worker import hostile

pytestmark = pytest.mark.slow
PROGRAM = str(Path(__file__).with_name("process_program.py"))


def runs(pid: int) -> bool:
    """True while the process exists and is not just waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@asynccontextmanager
async def program(*args: str, **environment: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The program in a session of its own, as a terminal or a service manager starts it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, PROGRAM, *args, stdout=subprocess.PIPE, start_new_session=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    try:
        async with asyncio.timeout(90):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def reads(process: asyncio.subprocess.Process, word: str) -> int:
    """The number in the next line of the program's output, which begins with the word."""
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    assert line.startswith(word), line
    return int(line.split()[1])


@pytest.mark.parametrize("how", ["sleep", "busy loop", "holding the GIL"])
async def test_a_child_ends_when_its_worker_was_killed(how: str) -> None:
    async with program(how) as process:
        child = await reads(process, "child")
        try:
            process.kill()
            await process.wait()
            await eventually(lambda: not runs(child), within=10)
        finally:
            if runs(child):
                os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_the_whole_group_lets_the_running_job_finish(number: signal.Signals) -> None:
    async with program("sleep", "4") as process:
        await reads(process, "child")
        os.killpg(process.pid, number)
        out, _ = await process.communicate()
    assert (out, process.returncode) == (b"completed finished\n", 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_the_whole_group_finds_a_child_that_is_starting(number: signal.Signals) -> None:
    async with program("sleep", "0.1", SLOW_START="1") as process:
        assert await reads(process, "booting") == process.pid
        booting = await reads(process, "booting")
        os.killpg(process.pid, number)
        assert await reads(process, "child") == booting
        out, _ = await process.communicate()
    assert (out, process.returncode) == (b"completed finished\n", 0)


@pytest.mark.parametrize("how", ["sleep", "busy loop"])
async def test_a_child_that_alone_gets_sigterm_fails_its_job_only(how: str) -> None:
    async with program(how) as process:
        child = await reads(process, "child")
        os.kill(child, signal.SIGTERM)
        await eventually(lambda: not runs(child))
        process.terminate()
        out, _ = await process.communicate()
    assert out == b"failed the process that ran the handler was sent SIGTERM\n"
    assert process.returncode == 0


async def test_an_idle_child_that_gets_sigterm_leaves_and_costs_no_job(queue: Queue, connection: Connection) -> None:
    async with Worker("work", hostile.pid, connection, executor="process") as worker:
        first = await (await queue.add(1)).wait(30)
        assert await (await queue.add(2)).wait(30) == first
        os.kill(first, signal.SIGTERM)
        await eventually(lambda: not runs(first))
        assert await (await queue.add(3)).wait(30) != first
        assert (worker.stats.completed, worker.stats.failed) == (3, 0)


async def test_an_idle_child_that_was_killed_costs_no_job(queue: Queue, connection: Connection) -> None:
    async with Worker("work", hostile.pid, connection, executor="process") as worker:
        first = await (await queue.add(1)).wait(30)
        os.kill(first, signal.SIGKILL)
        await eventually(lambda: not runs(first))
        assert await (await queue.add(3)).wait(30) != first
        assert (worker.stats.completed, worker.stats.failed) == (2, 0)


def test_a_program_that_ends_without_stopping_its_worker_takes_the_child_along(tmp_path: Path) -> None:
    script = tmp_path / "leaving.py"
    script.write_text(
        "import time\n"
        "from jobwire.sync import Queue, Worker, connect\n"
        "def handle(job):\n"
        "    job.update_progress(1)\n"
        "    time.sleep(600)\n"
        "if __name__ == '__main__':\n"
        "    connection = connect('memory:here')\n"
        "    queue = Queue('work', connection).open()\n"
        "    job = queue.add(1)\n"
        "    Worker('work', handle, connection, executor='process').__enter__()\n"
        "    while queue.get(job.id).progress is None:\n"
        "        time.sleep(0.01)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("how", "reason"), hostile.REASONS.items(), ids=list(hostile.REASONS))
async def test_a_hostile_exception_fails_its_job_and_leaves_the_child_at_work(
    queue: Queue, connection: Connection, how: str, reason: str
) -> None:
    async with Worker("work", hostile.handle, connection, executor="process") as worker:
        child = await (await queue.add("pid")).wait(30)
        with pytest.raises(JobFailed) as failed:
            await (await queue.add(how)).wait(30)
        assert reason in str(failed.value)
        assert await (await queue.add("pid")).wait(30) == child, "the child did not survive"
        assert (worker.stats.completed, worker.stats.failed) == (2, 1)


async def test_a_snooze_of_ones_own_class_crosses_the_pipe(queue: Queue, connection: Connection) -> None:
    async with Worker("work", hostile.handle, connection, executor="process") as worker:
        assert await (await queue.add("own snooze")).wait(30) == "snoozed before"
        assert worker.stats.snoozed == 1


async def test_a_thread_that_a_job_left_behind_does_not_speak_for_the_next_job(
    queue: Queue, connection: Connection
) -> None:
    async with Worker("work", hostile.leave_a_thread, connection, executor="process"):
        first, second = await queue.add("first"), await queue.add("second")
        assert await first.wait(30) == "left a thread"
        assert await second.wait(30) == "LostLock"
    stored: Any = await queue.get(second.id)
    assert stored.progress is None


async def test_the_copy_of_a_handler_that_forks_does_not_answer_for_another_job(
    queue: Queue, connection: Connection
) -> None:
    async with Worker("work", hostile.fork_and_return, connection, executor="process"):
        first, second = await queue.add("first"), await queue.add("second")
        assert (await first.wait(30), await second.wait(30)) == ("first", "second")


async def test_the_error_of_a_child_that_ends_oddly_names_the_cause(queue: Queue, connection: Connection) -> None:
    async with Worker("work", hostile.end_oddly, connection, executor="process"):
        for how, reason in (("exit", r"the handler called sys\.exit\(0\)"), ("signal", "died .killed by signal 40")):
            with pytest.raises(JobFailed, match=reason):
                await (await queue.add(how)).wait(30)
