"""Fifty open pages beside a busy worker: `python -m bench.dashboard --load`.

A worker in a process of its own runs jobs that wait a few milliseconds each, and adds as many as it runs. `jobwire
dashboard` runs in another process. In turns, fifty pages are open for some seconds and none is, and the jobs that the
worker completes are counted. Then fifty pages stay open for two minutes, and the memory of the dashboard is watched.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from bench.large_store import Store
from bench.server_cost import cpu_seconds

from jobwire import ActiveJob, Connection, NewJob, Queue, Worker

PAGES = 50
QUEUE = "orders"
_CONCURRENCY = 20
_HANDLER_S = 0.005
_STOCK = 2000


async def work(url: str) -> None:
    """Runs jobs for ever, a few of them in vain. Writes a line with their number a few times per second."""
    done = 0

    async def handler(job: ActiveJob) -> None:
        nonlocal done
        await asyncio.sleep(_HANDLER_S)
        done += 1
        if job.data["n"] % 50 == 0:
            raise ValueError(f"order {job.data['n']} was refused")

    async def report() -> None:
        while True:
            print(done, flush=True)
            await asyncio.sleep(0.2)

    async def feed(queue: Queue) -> None:
        added = 0
        while True:
            if added - done < _STOCK:
                await queue.add_many([NewJob({"n": added + n}) for n in range(500)])
                added += 500
            await asyncio.sleep(0.05)

    async with Connection(url) as connection:
        queue = Queue(QUEUE, connection)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(feed(queue))
            tasks.create_task(report())
            tasks.create_task(Worker(QUEUE, handler, connection, concurrency=_CONCURRENCY).run())


class Busy:
    """The worker's process."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "bench.open_pages", url]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        self.done = 0
        self._reading = asyncio.get_running_loop().run_in_executor(None, self._read)

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self.done = int(line)

    async def stop(self) -> None:
        self._process.kill()
        await self._reading
        self._process.wait()


async def hold(port: int, address: str, seen: list[int]) -> None:
    """Keeps one page open and reads what it gets."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n"
    try:
        writer.write(head.encode())
        while data := await reader.read(65536):
            seen[0] += len(data)
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def opened(port: int, addresses: list[str]) -> AsyncGenerator[list[int]]:
    """Keeps pages open inside the block. Yields the number of bytes that they got."""
    seen = [0]
    pages = [asyncio.create_task(hold(port, addresses[n % len(addresses)], seen)) for n in range(PAGES)]
    try:
        yield seen
        if any(page.done() for page in pages):
            raise RuntimeError("pages were closed by the dashboard")
    finally:
        for page in pages:
            page.cancel()
        await asyncio.gather(*pages, return_exceptions=True)


async def measure(store: Store, rounds: int, seconds: float, open_for: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "jobwire", "dashboard", f"--url={store.url}", "--port=0"]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    busy = Busy(store.url)
    try:
        line = next(line for line in served.stdout or () if "http://" in line)
        port = urlsplit("http://" + line.partition("http://")[2].split()[0]).port or 0
        name = quote(next(iter(await _stores(port))))
        of_queue = f"store={name}&queue={QUEUE}"
        kinds = ["/", f"/queue?{of_queue}", f"/jobs?{of_queue}&state=completed", f"/jobs?{of_queue}&state=waiting"]
        addresses = ["/", *kinds, f"/failures?{of_queue}", f"/workers?{of_queue}"]
        pids = {"worker": busy.pid, "store": store.server.pid, "dashboard": served.pid}
        await asyncio.sleep(10)  # until all three work steadily
        turns: list[dict[str, Any]] = []
        for turn in range(rounds):
            is_open = turn % 2 == 1
            async with opened(port, addresses) if is_open else contextlib.nullcontext():
                await asyncio.sleep(2)
                turns.append({"open": is_open, **await _turn(busy, pids, seconds)})
            print(store.protocol, {name: round(value, 2) for name, value in turns[-1].items()}, flush=True)
        memory = [_memory(served.pid)]
        async with opened(port, addresses) as seen:
            began = time.monotonic()
            while time.monotonic() - began < open_for:
                await asyncio.sleep(10)
                memory.append(_memory(served.pid))
        print(store.protocol, "MB", memory, f"{seen[0]:,} bytes", flush=True)
    finally:
        await busy.stop()
        served.terminate()
        served.wait()
    return {"turns": turns, "memory_mb": memory, "bytes": seen[0]}


async def _stores(port: int) -> list[str]:
    """Returns the names of the dashboard's stores, once it answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
    page = (await reader.read()).decode()
    writer.close()
    return [part.partition("&")[0].partition('"')[0] for part in page.split("store=")[1:]]


async def _turn(busy: Busy, pids: dict[str, int], seconds: float) -> dict[str, float]:
    before, done, began = {name: cpu_seconds(pid) for name, pid in pids.items()}, busy.done, time.perf_counter()
    await asyncio.sleep(seconds)
    took, jobs = time.perf_counter() - began, busy.done - done
    used = {f"{name}_cpu_s": (cpu_seconds(pid) - before[name]) * 60 / took for name, pid in pids.items()}
    return {"jobs_per_s": jobs / took, "load": os.getloadavg()[0], **used}


def _memory(pid: int) -> float:
    """Returns the resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def markdown(results: dict[str, Any]) -> list[str]:
    """Returns the section of the page about open pages."""
    lines = [f"## {PAGES} open pages beside a busy worker", ""]
    lines.append(
        "Turns with and without them. The last column is the dashboard's memory in MB: before two minutes with all "
        "pages open, in their middle, and at their end."
    )
    lines += ["", "| | jobs/s without | with | ratio of each pair | worker CPU ms per job | dashboard CPU s/min | MB |"]
    lines += ["|---|---:|---:|---|---:|---:|---:|"]
    for name, found in results.items():
        without = [one for one in found["turns"] if not one["open"]]
        beside = [one for one in found["turns"] if one["open"]]
        ratios = [two["jobs_per_s"] / one["jobs_per_s"] for one, two in zip(without, beside, strict=True)]
        per_job = [statistics.median(_per_job(one) for one in turns) for turns in (without, beside)]
        cpu = [statistics.median(one["dashboard_cpu_s"] for one in turns) for turns in (without, beside)]
        memory = found["memory_mb"]
        lines.append(
            f"| {name} | {_median(without):,.0f} | {_median(beside):,.0f} | {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}) | {per_job[0]:.2f} and {per_job[1]:.2f} | {cpu[0]:.1f} and "
            f"{cpu[1]:.1f} | {memory[0]:.0f}, {memory[len(memory) // 2]:.0f}, {memory[-1]:.0f} |"
        )
    loads = [one["load"] for found in results.values() for one in found["turns"]]
    return [*lines, "", f"Load average of the machine meanwhile: {min(loads):.0f} to {max(loads):.0f}."]


def _median(turns: list[dict[str, Any]]) -> float:
    return statistics.median(one["jobs_per_s"] for one in turns)


def _per_job(turn: dict[str, Any]) -> float:
    return turn["worker_cpu_s"] * 1000 / 60 / max(1, turn["jobs_per_s"])


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # failed jobs are logged with their tracebacks
    asyncio.run(work(sys.argv[1]))
