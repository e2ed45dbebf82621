"""RQ with its SimpleWorker, which runs jobs in its own process, one at a time."""

from __future__ import annotations

from bench.peers.meter import meter, order
from redis import Redis
from rq import Queue, SimpleWorker

connection = Redis.from_url(order.url or "redis://")
queue = Queue("bench", connection=connection)


def handle(sent: float) -> None:
    meter.run(sent)


def open_queue() -> None:
    connection.ping()


def add(sent: float) -> None:
    queue.enqueue(handle, sent)


def add_many(jobs: int) -> None:
    for first in range(0, jobs, 1000):
        queue.enqueue_many([Queue.prepare_data(handle, (0.0,)) for _ in range(min(1000, jobs - first))])


def work(concurrency: int) -> None:
    SimpleWorker([queue], connection=connection).work(logging_level="ERROR")
