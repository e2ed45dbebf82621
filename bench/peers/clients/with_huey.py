"""Huey with threads. It has no call that adds many jobs."""

from __future__ import annotations

from bench.peers.meter import meter, order
from huey import RedisHuey

huey = RedisHuey("bench", url=order.url)


@huey.task()
def handle(sent: float) -> None:
    meter.run(sent)


def open_queue() -> None:
    huey.pending_count()


def add(sent: float) -> None:
    handle(sent)


def add_many(jobs: int) -> None:
    for _ in range(jobs):
        add(0.0)


def work(concurrency: int) -> None:
    huey.create_consumer(workers=concurrency, worker_type="thread", periodic=False).run()
