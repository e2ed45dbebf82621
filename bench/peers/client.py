"""Runs one client on one order: python -m bench.peers.client <module in clients/> <order as JSON>.

A module in `clients/` has `open_queue`, `add`, `add_many` and `work`: all coroutine functions, or all plain ones.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import sys
import threading
import time
from typing import Any

from bench.peers.meter import finish, meter, order

IDLE = 0.02
"""Seconds between two jobs of a latency run, so that the worker waits again."""
WARMUP = 5


async def serve_async(client: Any) -> None:
    await client.open_queue()
    _freeze()
    match order.operation:
        case "add":
            await client.add(0.0)
            began = _now()
            for _ in range(order.jobs):
                await client.add(0.0)
            _report(began)
        case "bulk_add":
            await client.add(0.0)
            began = _now()
            await client.add_many(order.jobs)
            _report(began)
        case "work":
            await client.work(order.concurrency)
        case _:
            working = asyncio.create_task(client.work(order.concurrency))
            await asyncio.sleep(1.0)
            for _ in range(order.jobs + WARMUP):
                await asyncio.sleep(IDLE)
                await client.add(time.time())
                started = asyncio.create_task(meter.started_async.acquire())
                await asyncio.wait([started, working], return_when=asyncio.FIRST_COMPLETED)
                if working.done():
                    working.result()
            finish({"waits": meter.waits[WARMUP:]})


def serve(client: Any) -> None:
    client.open_queue()
    _freeze()
    match order.operation:
        case "add":
            client.add(0.0)
            began = _now()
            for _ in range(order.jobs):
                client.add(0.0)
            _report(began)
        case "bulk_add":
            client.add(0.0)
            began = _now()
            client.add_many(order.jobs)
            _report(began)
        case "work":
            client.work(order.concurrency)
        case _:
            threading.Thread(target=_add_one_by_one, args=(client,), daemon=True).start()
            client.work(order.concurrency)


def _add_one_by_one(client: Any) -> None:
    time.sleep(1.0)
    for _ in range(order.jobs + WARMUP):
        time.sleep(IDLE)
        client.add(time.time())
        meter.started.acquire()
    finish({"waits": meter.waits[WARMUP:]})


def _freeze() -> None:
    gc.collect()
    gc.freeze()  # as a service would: a run this short should not pay for one walk over all that was imported


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _report(began: tuple[float, float]) -> None:
    wall, cpu = _now()
    finish({"seconds": wall - began[0], "cpu": cpu - began[1]})


if __name__ == "__main__":
    chosen = importlib.import_module(f"bench.peers.clients.{sys.argv[1]}")
    if inspect.iscoroutinefunction(chosen.work):
        asyncio.run(serve_async(chosen))
    else:
        serve(chosen)
