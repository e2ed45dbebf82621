"""Tasks whose functions run in child processes, and apps that the command line runs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobwire import JobFailed
from tasks.shapes import Line, Order

pytestmark = [pytest.mark.slow]
TESTS = Path(__file__).parent.parent


@pytest.fixture
def program(jobwire_url, monkeypatch):
    monkeypatch.setenv("JOBWIRE_URL", jobwire_url)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]))
    sys.modules.pop("tasks.program", None)
    import tasks.program

    yield tasks.program
    sys.modules.pop("tasks.program", None)


async def test_functions_run_in_child_processes_with_their_types_and_dependencies(program):
    async with program.app, program.app.worker(["pack", "fetch", "wrong"]):
        packing = await program.pack.add(Order(1, [Line("a")]))
        packed = await packing.wait(60)
        assert packed[0] == Line("a")
        name, _, pid = packed[1].sku.partition(" in ")
        assert (name, packed[1].count) == ("pack", 7)
        assert int(pid) != os.getpid()
        assert await program.app.queue("pack").logs(packing.id) == ["packing"]
        assert await (await program.fetch.add("http://a")).wait(60) == 8
        with pytest.raises(
            JobFailed, match="task wrong returned something else than it declares: must be int, not str"
        ):
            await (await program.wrong.add(1)).wait(60)
        with pytest.raises(JobFailed, match="no"):
            await (await program.wrong.add(2)).wait(60)
        bad = await program.app.queue("fetch").add({"url": 5}, name="fetch", attempts=3)
        with pytest.raises(JobFailed, match=r"task fetch: data\.url: must be str, not int"):
            await bad.wait(60)


async def test_the_command_line_runs_an_app(program):
    command = [sys.executable, "-m", "jobwire", "worker", "tasks.program:app", "--queue", "greet"]
    worker = subprocess.Popen(command, cwd=TESTS)
    try:
        async with program.app:
            answer = await (await program.greet.add("zoë")).wait(60)
        worker.terminate()
        assert await asyncio.to_thread(worker.wait, 30) == 0
    finally:
        worker.kill()
        worker.wait()
    assert answer.startswith("hello zoë, from ")
    assert answer != f"hello zoë, from {os.getpid()}"
