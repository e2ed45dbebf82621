"""Celery with its pool of threads, or its solo pool for one job at a time. It has no call that adds many jobs."""

from __future__ import annotations

from bench.peers.meter import meter, order
from celery import Celery

app = Celery("bench", broker=order.url)
app.conf.update(task_ignore_result=True, worker_redirect_stdouts=False, broker_connection_retry_on_startup=True)


@app.task
def handle(sent: float) -> None:
    meter.run(sent)


def open_queue() -> None:
    app.connection_for_write().ensure_connection()


def add(sent: float) -> None:
    handle.delay(sent)


def add_many(jobs: int) -> None:
    for _ in range(jobs):
        add(0.0)


def work(concurrency: int) -> None:
    pool = "solo" if concurrency == 1 else "threads"
    app.Worker(pool=pool, concurrency=concurrency, loglevel="ERROR", quiet=True, without_gossip=True).start()
