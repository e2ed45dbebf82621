"""`jobwire worker --listen` and `jobwire health`, as the checks of a container use them."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry

from jobwire import State
from jobwire.observe.metrics import Metrics
from observe.scraping import scrape_blocking

Call = Callable[..., Any]

SHOP = """
import asyncio, pathlib, time

async def handle(job): ...

async def slow(job):
    while not pathlib.Path("go-on").exists():
        await asyncio.sleep(0.02)

async def blocks_the_loop(job):
    pathlib.Path("blocked").touch()
    while not pathlib.Path("go-on").exists():
        time.sleep(0.02)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def port_of(worker: subprocess.Popen[str]) -> str:
    assert worker.stderr is not None
    for line in worker.stderr:
        if found := re.search(r"serving http://127\.0\.0\.1:(\d+)/metrics", line):
            return found[1]
    raise AssertionError("it does not serve")


@pytest.mark.slow
def test_a_worker_is_ready_and_then_stopping(
    *, start: Call, shop: Path, call: Call, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    worker = start("worker", "shop:slow", "--queue", "emails", "--listen", "0", "--url", jobwire_url)
    port = port_of(worker)
    eventually(lambda: call("health", port).code == 0)
    assert call("health", port).out == "ready\n"
    assert call("health", f"0.0.0.0:{port}", "--live").out == "alive\n"
    assert call("health", port, "--json").json["connected"] is True

    on_queue(lambda queue: queue.add(1))
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.ACTIVE] == 1)
    assert scrape_blocking(int(port)).value("bullmq_queue_length", queue="emails", state="active") == 1.0
    worker.send_signal(signal.SIGTERM)
    said = eventually(lambda: (said := call("health", port)).code == 1 and said)
    assert said.err == f"jobwire: 127.0.0.1:{port}: stopping: 1 job is still running\n"
    assert call("health", port, "--live").code == 0
    (shop / "go-on").touch()
    assert worker.wait(timeout=30) == 0
    assert call("health", port).code == 3


@pytest.mark.slow
def test_a_blocked_event_loop_is_neither_ready_nor_alive(
    *, start: Call, shop: Path, call: Call, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    worker = start("worker", "shop:blocks_the_loop", "--queue", "emails", "--listen", "0", "--url", jobwire_url)
    port = port_of(worker)
    on_queue(lambda queue: queue.add(1))
    eventually((shop / "blocked").exists)
    said = call("health", port, "--live")
    assert (said.code, said.err) == (1, f"jobwire: 127.0.0.1:{port}: the event loop has been blocked for 3 s\n")
    assert scrape_blocking(int(port)).value("bullmq_queue_length", queue="emails", state="active") == 1.0
    (shop / "go-on").touch()
    eventually(lambda: call("health", port).code == 0)


@pytest.mark.slow
def test_a_store_that_is_not_there_makes_a_worker_unready_and_leaves_it_alive(
    start: Call, shop: Path, call: Call
) -> None:
    url = "bullmq+redis://127.0.0.1:1/0"
    worker = start(
        "worker", "shop:handle", "--queue", "emails", "--listen", "0", "--wait-for-store", "60", "--url", url
    )
    port = port_of(worker)
    assert "the worker has not started" in call("health", port).err
    assert call("health", port, "--live").code == 0
    with pytest.raises(HTTPError) as found:
        urlopen(f"http://127.0.0.1:{port}/", timeout=10)
    assert found.value.code == 404
    assert json.loads(found.value.read())["why"] == "see /metrics, /live and /ready"
    worker.terminate()
    assert worker.wait(timeout=30) == 0


@pytest.mark.slow
def test_each_process_has_the_port_after_the_one_before(
    *, start: Call, shop: Path, call: Call, jobwire_url: str, eventually: Call, free_ports: list[int]
) -> None:
    first, second = free_ports
    arguments = ("--queue", "emails", "--processes", "2", "--listen", first, "--url", jobwire_url)
    worker = start("worker", "shop:handle", *arguments)
    eventually(lambda: call("health", first, second).code == 0)
    worker.terminate()
    assert worker.wait(timeout=30) == 0


@pytest.mark.parametrize("value", ["", "http", "1.2.3.4", "70000", "::1:80", "http://127.0.0.1:80"])
def test_a_wrong_address_is_refused(call: Call, value: str) -> None:
    for arguments in (["health", value], ["worker", "shop:handle", "--queue", "emails", "--listen", value]):
        said = call(*arguments)
        assert said.code == 2
        assert "write PORT or HOST:PORT" in " ".join(said.err.split())


@pytest.mark.slow
def test_a_port_that_is_taken_is_named(spawn: Call, shop: Path) -> None:
    with metrics_server() as port:
        said = spawn("worker", "shop:handle", "--queue", "emails", "--listen", port, "--url", "memory:")
    assert said.code == 1
    assert f"listen: can't be listened on: Address already in use (got '127.0.0.1:{port}')" in said.err


def test_a_port_where_nothing_listens_does_not_answer(call: Call, free_ports: list[int]) -> None:
    said = call("health", free_ports[0])
    assert said.code == 3
    assert "does not answer" in said.err


def test_another_server_is_not_taken_for_a_worker(call: Call) -> None:
    with metrics_server() as port:
        said = call("health", port)
    assert (said.code, said.err) == (
        1,
        f"jobwire: http://127.0.0.1:{port}/ready is not the endpoint of a jobwire worker\n",
    )


@contextlib.contextmanager
def metrics_server() -> Iterator[int]:
    """A server of metrics alone, which answers every path."""
    with Metrics(CollectorRegistry()) as metrics:
        yield metrics.serve(0)


def test_a_service_that_does_not_speak_http_is_not_a_worker(call: Call) -> None:
    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"-ERR unknown command\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as threads:
        threads.submit(answer, server)
        said = call("health", str(server.getsockname()[1]), "--timeout", "20s")
    assert (said.code, said.out) == (1, ""), said
    assert said.err.endswith("is not the endpoint of a jobwire worker\n")
