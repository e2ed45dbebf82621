"""bench, flow, tasks."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobwire import Feature, Flow, FlowJob, Queue

Call = Callable[..., Any]

APP = """
from jobwire import App, Backoff, Rate

app = App("memory:")
empty = App("memory:")

@app.task(queue="emails", attempts=3, backoff=Backoff.exponential(2), rate=Rate(10, per=60))
async def send(to: str, copies: int = 1) -> None: ...

@app.task(queue="reports")
def render(month: str) -> str: ...
"""


def test_a_bench_measures_and_leaves_nothing(call: Call, every_url: str) -> None:
    said = call("bench", "--seconds", 1, "--concurrency", 5, "--json", "--url", every_url)
    figures = said.json
    assert min(figures["adds"], figures["bulk_adds"], figures["jobs"]) > 0
    assert "deletes it" in said.err
    assert call("queues", "--url", every_url).code == 4


def test_an_interrupted_bench_deletes_its_queue(start: Call, call: Call, jobwire_url: str, eventually: Call) -> None:
    running = start("bench", "--seconds", 60, "--url", jobwire_url)
    eventually(lambda: call("queues", "--names", "--url", jobwire_url).out.startswith("jobwire-bench-"))
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in err
    assert call("queues", "--url", jobwire_url).code == 4


def test_a_flow_is_shown_as_a_tree_or_there_are_none(call: Call, on_every: Call, every_url: str) -> None:
    async def add(queue: Queue) -> str | None:
        await queue.add(1)
        if not queue.capabilities.has(Feature.FLOWS):
            return None
        flow = Flow(queue.connection)
        pages = [FlowJob("pages", number, children=[FlowJob("lines", number)]) for number in (1, 2)]
        return (await flow.add(FlowJob("emails", "book", children=pages))).job.id

    root = on_every(every_url, add)
    if root is None:
        said = call("flow", "emails", "1", "--url", every_url)
        assert (said.code, said.out) == (1, ""), said
        assert "has no flows" in said.err
        return
    shown = call("flow", "emails", root, "--url", every_url).out.splitlines()
    assert len(shown) == 5
    assert shown[0] == f"{root} in emails  waiting_children"
    assert sum("in lines  waiting" in line for line in shown) == 2
    tree = call("flow", "emails", root, "--json", "--url", every_url).json
    assert [child["queue"] for child in tree["children"]] == ["pages", "pages"]
    assert call("flow", "emails", "404", "--url", every_url).code == 4


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with an app, whose name no other test has."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "shop_of_the_cli.py").write_text(APP)
    yield "shop_of_the_cli"
    sys.modules.pop("shop_of_the_cli", None)


def test_the_tasks_of_an_app_are_listed(call: Call, shop: str) -> None:
    send, render = call("tasks", f"{shop}:app", "--json").lines
    assert (send["task"], send["queue"], send["options"]) == (
        "send",
        "emails",
        {"rate": "10/60s", "attempts": 3, "backoff": "exponential:2s"},
    )
    assert "to: str, copies: int = 1" in send["parameters"]
    assert render["task"] == "render"
    shown = call("tasks", f"{shop}:app").out.splitlines()
    assert [line.split()[:2] for line in shown[1:]] == [["send", "emails"], ["render", "reports"]]
    assert call("tasks", f"{shop}:empty").code == 4
    wrong = call("tasks", f"{shop}:Rate")
    assert wrong.code == 2
    assert "is not an App" in wrong.err
