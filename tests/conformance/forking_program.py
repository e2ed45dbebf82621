"""A program that forks while it has queues and workers. Its arguments are a scenario and a URL."""

from __future__ import annotations

import asyncio
import builtins
import importlib
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg  # noqa: F401 - the drivers are imported before, and not by each run
import pymongo  # noqa: F401
import pytest
import redis.asyncio  # noqa: F401

from jobwire import Queue as AsyncQueue
from jobwire import State, sync
from jobwire import Worker as AsyncWorker
from jobwire.boundary import Feature
from jobwire.errors import Closed
from jobwire.portal import portal

QUEUE = "letters"


def in_child(act: Callable[[], object], *, leaves: bool = False) -> None:
    """Run the function in a forked process and see that it ends well; by os._exit, or `leaves` as a program does."""
    pid = os.fork()
    if not pid:
        if leaves:
            act()
            sys.exit(0)
        code = 1
        try:
            act()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status


def total(queue: Any) -> int:
    return sum(queue.counts().values())


def double(job: Any) -> int:
    return job.data * 2


def open_queue(url: str) -> None:
    """Both go on with the queue that the parent has opened, in turns."""
    with sync.Queue(QUEUE, url) as queue:
        job = queue.add(1)
        in_child(lambda: (queue.add(2), queue.get(job.id).data, queue.close()))
        queue.add(3)
        in_child(lambda: queue.add(4), leaves=True)
        queue.add(5)
        in_child(lambda: in_child(lambda: queue.add(6)))
        assert total(queue) == 6


def operators(url: str) -> None:
    """The operators' half of a queue works in the child as in the parent, and so does a loop over all jobs."""
    with sync.Queue(QUEUE, url) as queue:
        first, *others = [queue.add(n) for n in range(4)]
        stale = queue.iter_jobs(page_size=2)
        next(stale)

        def child() -> None:
            queue.admin.remove(first.id)
            assert [job.data for job in queue.iter_jobs(page_size=2)] == [1, 2, 3]
            with pytest.raises(RuntimeError, match="make a new one"):
                list(stale)
            queue.close()
            with pytest.raises(Closed):
                queue.admin.remove(others[0].id)

        in_child(child)
        queue.admin.remove(others[0].id)
        assert [job.data for job in queue.iter_jobs()] == [2, 3]
        stale.close()


def closed_queue(url: str) -> None:
    """A child makes a queue of its own after the parent has closed one, or has never had one."""

    def own() -> None:
        with sync.Queue(QUEUE, url) as queue:
            queue.add(1)

    in_child(own)
    own()
    in_child(own)
    with sync.Queue(QUEUE, url) as queue:
        assert total(queue) == 3


def busy_parent(url: str) -> None:
    """Forks while another thread of the parent is inside calls: whatever it holds is not held in the child."""
    with sync.connect(url) as connection, sync.Queue(QUEUE, connection) as queue:
        done, added = threading.Event(), 0

        def hammer() -> None:
            nonlocal added
            while not done.is_set():
                queue.add(0)
                added += 1

        threads = [threading.Thread(target=hammer) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            in_child(lambda: queue.add(1))
        done.set()
        for thread in threads:
            thread.join()
        assert total(queue) == added + 5


def importing_parent(url: str) -> None:
    """Forks while the portal's thread imports a module: its lock is not held in the child."""
    with tempfile.TemporaryDirectory() as folder, sync.Queue(QUEUE, url) as queue:
        Path(folder, "slowly_imported.py").write_text(
            "import builtins\nbuiltins.importing.set()\nbuiltins.ready.wait(1)\n"
        )
        sys.path.insert(0, folder)
        importing = builtins.importing = threading.Event()  # type: ignore[attr-defined]
        builtins.ready = threading.Event()  # type: ignore[attr-defined]
        portal.soon(lambda: importlib.import_module("slowly_imported"))
        assert importing.wait(20)

        def child() -> None:
            signal.alarm(20)  # ends a child that waits for the lock
            importlib.import_module("slowly_imported")
            queue.add(1)

        in_child(child)
        queue.add(2)


_opened: list[Any] = []


def pool(url: str) -> None:
    """multiprocessing's way, in which children find the queue as a global."""
    queue = sync.Queue(QUEUE, url).open()
    _opened.append(queue)
    queue.add(0)
    with multiprocessing.get_context("fork").Pool(3) as workers:
        ids = workers.map(_add, range(12))
    assert len(set(ids)) == 12
    assert total(queue) == 13
    queue.close()


def _add(number: int) -> str:
    return _opened[0].add(number).id


def waited_for(url: str) -> None:
    """A job of the parent is waited for in the child, and worked on by the parent, whose worker runs on."""
    with sync.connect(url) as connection, sync.Queue(QUEUE, connection) as queue:
        with sync.Worker(QUEUE, double, connection) as worker:
            assert queue.add(1).wait(20) == 2
            job = queue.add(4)

            def child() -> None:
                assert job.wait(20) == 8
                assert queue.add(5).wait(20) == 10
                assert not worker.inner.running

            in_child(child)
            in_child(lambda: queue.add(6).wait(20), leaves=False)
            assert queue.add(7).wait(20) == 14
        assert queue.counts()[State.COMPLETED] == 5


def worker_in_child(url: str) -> None:
    """Workers defined before the fork run in each child, under ids of their own."""
    with sync.connect(url) as connection, sync.Queue(QUEUE, connection) as queue:
        worker = sync.Worker(QUEUE, double, connection)
        named = sync.Worker(QUEUE, double, connection, worker_id="mine")
        with worker:
            assert queue.add(1).wait(20) == 2  # its pool has a thread, which the child has not
        read, write = os.pipe()

        def child() -> None:
            assert named.id == "mine"
            with worker:
                assert queue.add(2).wait(20) == 4
            os.write(write, f"{worker.id}\n".encode())

        in_child(child)
        in_child(child)
        ids = os.read(read, 1000).decode().split()
        assert len({worker.id, *ids}) == 3, ids


def iterator(url: str) -> None:
    """An iterator is not for children; theirs is a new one."""
    with sync.Queue(QUEUE, url) as queue:
        if not queue.capabilities.has(Feature.EVENTS):
            return
        queue.add(1)
        events = queue.events(since=None)
        waiting = threading.Thread(target=lambda: next(events))
        queue.add(2)
        waiting.start()

        def child() -> None:
            assert total(queue) >= 2

        in_child(child)
        while waiting.is_alive():
            queue.add(3)
            waiting.join(0.1)

        def stale() -> None:
            with pytest.raises(RuntimeError, match="make a new one"):
                next(events)

        in_child(stale)
        in_child(events.close)
        queue.add(4)
        assert next(events).id
        events.close()


def in_memory(url: str) -> None:
    """Where the store is a part of the process, a child begins with an empty one."""
    with sync.Queue(QUEUE, url) as queue:
        queue.add(1)
        queue.add(2)

        def child() -> None:
            assert total(queue) == 0
            queue.add(3)
            assert total(queue) == 1

        in_child(child)
        assert total(queue) == 2


def asynchronous(url: str) -> None:
    """The async face: what the parent had open opens again in the child, in an event loop of its own."""
    asyncio.run(_asynchronous(url))


async def _asynchronous(url: str) -> None:
    async def work(job: Any) -> int:
        return job.data * 2

    async with AsyncQueue(QUEUE, url) as queue, AsyncWorker(QUEUE, work, queue.connection) as worker:
        assert await (await queue.add(1)).wait(20) == 2

        async def child() -> None:
            assert await (await queue.add(2)).wait(20) == 4
            async with worker:
                assert await (await queue.add(3)).wait(20) == 6
            await queue.close()
            with pytest.raises(Closed):
                await queue.add(5)

        for _ in range(2):
            await asyncio.to_thread(in_child, lambda: asyncio.run(child()))
        assert await (await queue.add(4)).wait(20) == 8


def main(scenario: str, url: str) -> None:
    globals()[scenario](url)
    print("done")
