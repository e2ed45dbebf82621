"""Several processes share an outbox, and any of them may be killed at any time."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest

from warm_program import Run, WarmProgram

WRITER = Path(__file__).with_name("outbox_writer.py")
MESSAGES = 400
KILLS = 60


@pytest.fixture(scope="module")
def program() -> Iterator[WarmProgram]:
    with closing(WarmProgram(WRITER)) as program:
        yield program


@asynccontextmanager
async def started(
    program: WarmProgram, path: Path, first: int, count: int
) -> AsyncIterator[tuple[Run, asyncio.StreamReader]]:
    """Starts a writer. Gives its process and what it prints."""
    reading, writing = os.pipe()
    try:
        run = program.start(path, first, count, stdout=writing)
    finally:
        os.close(writing)
    output = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), os.fdopen(reading, "rb")
    )
    with closing(transport):
        yield run, output


def receipts(output: bytes) -> list[tuple[int, str]]:
    """Returns what a writer printed: the number and the receipt of each message."""
    pairs = [line.split() for line in output.decode().splitlines(keepends=True) if line.endswith("\n")]
    return [(int(number), receipt) for number, receipt in pairs]


def written(path: Path) -> dict[int, str]:
    """Returns the number and the receipt of each line, after a check that each key is there once."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    counts = Counter(entry["idempotencyKey"] for entry in entries)
    assert [key for key, count in counts.items() if count > 1] == []
    return {int(entry["jobId"].removeprefix("job-")): entry["id"] for entry in entries}


@pytest.mark.slow
async def test_processes_that_send_the_same_keys_write_each_once(program: WarmProgram, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    async with AsyncExitStack() as stack:
        firsts = (1, 1, 101, 151)
        writers = [await stack.enter_async_context(started(program, path, first, 200)) for first in firsts]
        outputs = await asyncio.gather(*(output.read() for _, output in writers))
        assert [await asyncio.to_thread(run.wait) for run, _ in writers] == [0, 0, 0, 0]
    found = written(path)
    assert set(found) == set(range(1, 351))
    assert [pair for output in outputs for pair in receipts(output) if found[pair[0]] != pair[1]] == []


@pytest.mark.slow
async def test_writers_that_are_killed_at_random_lose_nothing_and_repeat_nothing(
    program: WarmProgram, tmp_path: Path
) -> None:
    path = tmp_path / "out.jsonl"
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    kills = 0
    promised: list[tuple[int, str]] = []

    async def until_done(first: int) -> None:
        """Sends a range of messages, each time from its start, with kills until there were enough of them."""
        nonlocal kills
        while True:
            async with started(program, path, first, MESSAGES) as (run, output):
                printed = b""
                if kills < KILLS:
                    # The moment is drawn from the writer's own progress, so that kills fall into sends on any machine.
                    for _ in range(chance.randrange(1, MESSAGES)):
                        printed += await output.readline()
                    for _ in range(chance.randrange(300)):
                        await asyncio.sleep(0)
                    kills += 1
                    run.kill()
                printed += await output.read()
                promised.extend(receipts(printed))
                if await asyncio.to_thread(run.wait) == 0:
                    return

    await asyncio.gather(until_done(1), until_done(MESSAGES // 2))
    found = written(path)
    assert set(found) == set(range(1, MESSAGES // 2 + MESSAGES)), seed
    assert [pair for pair in promised if found[pair[0]] != pair[1]] == [], seed
    assert kills >= KILLS


MEMORY = """
import asyncio, resource, sys
sys.path.insert(0, sys.argv[2])
from campaigns.transports.messages import message
from jobwire.campaigns.transports import Sender, transport_of

async def main():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with Sender(transport_of(f"outbox:{sys.argv[1]}"), timeout=150) as sender:
        old = await sender.send(message(1, idempotency_key="k777777"))
        new = await sender.send(message(1))
        assert await sender.send(message(1)) == new
    print(old.id, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)

asyncio.run(main())
"""


@pytest.mark.slow
async def test_an_outbox_of_a_million_lines_is_indexed_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with path.open("w") as file:
        for number in range(1_000_000):
            file.write(f'{{"id":"r{number}","at":"2025-01-16T00:00:00+00:00","idempotencyKey":"k{number}"}}\n')
    size = path.stat().st_size
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MEMORY, path, str(WRITER.parents[2]), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    receipt, megabytes = output.decode().split()
    assert receipt == "r777777"
    assert int(megabytes) < 40
    assert path.stat().st_size > size
