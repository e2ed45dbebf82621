"""jobwire on the paths beside plain jobs: python paths.py <order as JSON>. Prints one line of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from jobwire import ActiveJob, Queue, Worker, connect
from jobwire.boundary import ConsumerSettings
from jobwire.connection import Connection
from jobwire.flow import Flow, FlowJob

Order = dict[str, Any]


class Countdown:
    """An observer of a worker that tells when so many jobs have been settled."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs
        self.done = asyncio.Event()

    def started(self, *_: Any) -> None: ...

    def settled(self, *_: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.done.set()


async def nothing() -> None: ...


async def times(
    rounds: int, work: Callable[[], Awaitable[Any]], before: Callable[[], Awaitable[Any]] = nothing
) -> dict[str, Any]:
    seconds: list[float] = []
    for _ in range(rounds):
        await before()
        began = time.perf_counter()
        await work()
        seconds.append(time.perf_counter() - began)
    return {"seconds": seconds}


async def run_all(connection: Connection, order: Order, queues: list[str]) -> dict[str, Any]:
    """Work the queues until all jobs of the last one are done."""

    async def handle(job: ActiveJob) -> None:
        return None

    countdown = Countdown(order["jobs"])
    workers = [
        Worker(
            name,
            handle,
            connection,
            concurrency=order["concurrency"],
            observers=[countdown] if name == queues[-1] else [],
        )
        for name in queues
    ]
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(times(1, countdown.done.wait))
        for worker in workers:
            group.create_task(worker.run(signals=False))
        await answer
        for worker in workers:
            await worker.stop()
    return answer.result()


async def flow_add(connection: Connection, order: Order) -> dict[str, Any]:
    def tree(number: int) -> FlowJob:
        children = [FlowJob("leaves", {"n": n}, name="leaf") for n in range(order["children"])]
        return FlowJob("roots", {"n": number}, name="root", children=children)

    trees = [tree(number) for number in range(order["jobs"])]
    async with Flow(connection) as flow:

        async def add_all() -> None:
            for first in range(0, len(trees), order["chunk"]):
                await flow.add_many(trees[first : first + order["chunk"]])

        return await times(1, add_all)


async def schedule_put(connection: Connection, order: Order) -> dict[str, Any]:
    async with Queue("bench", connection) as queue:

        async def put_all() -> None:
            for first in range(0, order["jobs"], order["chunk"]):
                names = [f"s{n}" for n in range(first, min(first + order["chunk"], order["jobs"]))]
                await asyncio.gather(*[queue.schedule(name, every=3600, name="n") for name in names])

        return await times(1, put_all)


async def stalled(connection: Connection, order: Order) -> dict[str, Any]:
    consumer = connection.backend.consumer(ConsumerSettings("bench", "w"))
    check = next(duty for duty in consumer.duties() if duty.name == "recover")
    client = connection.backend._server.store.client  # type: ignore[attr-defined]
    return await times(order["rounds"], check.run, lambda: client.delete("bull:bench:stalled-check"))


async def claim(connection: Connection, order: Order) -> dict[str, Any]:
    consumer = connection.backend.consumer(ConsumerSettings("bench", "w"))
    return await times(order["rounds"], lambda: consumer.settle([], order["batch"]))


PATHS: dict[str, Callable[[Connection, Order], Awaitable[dict[str, Any]]]] = {
    "flow_add": flow_add,
    "flow_run": lambda connection, order: run_all(connection, order, ["leaves", "roots"]),
    "schedule_put": schedule_put,
    "schedule_run": lambda connection, order: run_all(connection, order, ["bench"]),
    "stalled": stalled,
    "claim": claim,
}


async def main(order: Order) -> dict[str, Any]:
    async with connect(f"bullmq+{order['url']}") as connection:
        return await PATHS[order["path"]](connection, order)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))), flush=True)
