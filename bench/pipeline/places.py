"""Where the measuring happens: throwaway servers with queues in them, Spark sessions, and processes of their own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from jobwire import NewJob, embedded
from jobwire.pipeline.spark.session import spark_session
from jobwire.sync import Queue

PROTOCOLS = ("bullmq", "bridgemq", "pgboss", "monque")
CHUNK = 5000
ROOT = Path(__file__).parents[2]

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


@contextmanager
def stores(folder: Path) -> Generator[dict[str, str]]:
    """A URL for each protocol, on servers that keep nothing."""
    with ExitStack() as stack:
        valkey = stack.enter_context(embedded.valkey(folder / "valkey", durable=False))
        postgres = stack.enter_context(embedded.postgres(folder / "postgres", durable=False))
        mongo = stack.enter_context(embedded.mongo(folder / "mongo", durable=False))
        yield {
            "bullmq": f"bullmq+{valkey.url}?prefix=bench",
            "bridgemq": f"bridgemq+{valkey.url}?namespace=bench",
            "pgboss": f"pgboss+{postgres.url}?schema=bench",
            "monque": f"monque+{mongo.url}".replace("/?", "/bench?"),
        }


def payload(number: int) -> dict[str, Any]:
    """About 200 bytes, with letters of three alphabets."""
    return {"n": number, "to": f"zoë-{number}@例え.jp", "subject": "Ваш заказ", "text": "x" * 120}


def fill(url: str, queue: str, jobs: int) -> None:
    """Have the queue, with this many jobs that wait."""
    with Queue(queue, url) as there:
        there.counts()
        for start in range(0, jobs, CHUNK):
            there.add_many([NewJob(payload(number)) for number in range(start, min(start + CHUNK, jobs))])


@contextmanager
def session(cores: int, memory: str = "2g", *, brief: bool = False) -> Generator[Any]:
    """Spark on so many cores. Its memory is that of the process's first session. `brief` as commands ask for it."""
    # Spark's Python processes find this package by it.
    os.environ["PYTHONPATH"] = str(ROOT)
    spark = spark_session(f"local[{cores}]", {"spark.driver.memory": memory}, brief=brief)
    try:
        yield spark
    finally:
        spark.stop()


def apart(function: Callable[Given, Answer], *given: Given.args, **named: Given.kwargs) -> Answer:
    """The function's answer from a new process: a Java machine starts with it and ends with it."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *given, **named).result()
