"""Dramatiq. It has no call that adds many jobs."""

from __future__ import annotations

import threading

import dramatiq
from bench.peers.meter import meter, order
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(url=order.url)
dramatiq.set_broker(broker)


@dramatiq.actor
def handle(sent: float) -> None:
    meter.run(sent)


def open_queue() -> None:
    broker.client.ping()


def add(sent: float) -> None:
    handle.send(sent)


def add_many(jobs: int) -> None:
    for _ in range(jobs):
        add(0.0)


def work(concurrency: int) -> None:
    dramatiq.Worker(broker, worker_threads=concurrency).start()
    threading.Event().wait()
