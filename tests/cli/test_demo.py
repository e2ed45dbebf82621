"""The demo ends by itself, says what it saw, and notices what is missing."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from jobwire.backoff import Backoff
from jobwire.boundary import Capabilities, Feature
from jobwire.cli.commands.pipeline.stage import interrupted_later
from jobwire.cli.demo.demo_store import DemoStore
from jobwire.cli.demo.history import History
from jobwire.cli.demo.report import QueueReport, Report, StoreReport
from jobwire.cli.demo.run import Plan, run
from jobwire.cli.demo.snapshot import Snapshot
from jobwire.cli.demo.workload import fitted
from jobwire.errors import JobwireError
from jobwire.options import NewJob

Call = Callable[..., Any]


@pytest.mark.slow
def test_away_from_a_terminal_it_prints_lines_and_ends_with_0(start: Call, spawn: Call, tmp_path: Path) -> None:
    demo = start("demo", "--seconds", "2", "--rate", "100", "--no-report")
    first = [demo.stdout.readline(), demo.stdout.readline()]
    assert first[0] == "starting the embedded servers …\n"
    page = page_at(address_in(first[1]))
    out, err = demo.communicate(timeout=150)
    assert (demo.returncode, err) == (0, ""), out + err
    for protocol in ("bullmq", "bridgemq", "monque", "pgboss"):
        assert f"{protocol}+embedded:.jobwire/demo" in page, page
    progress = re.findall(r"^ +[\d.]+ s  bullmq: (\d+) added, (\d+) completed", out, re.MULTILINE)
    assert len(progress) >= 3, out
    assert int(progress[-1][0]) > 100
    assert re.search(r"✓ nothing lost: \d+ added = \d+ completed \+ \d+ failed \+ 0 left", out), out
    assert "jobwire doctor bullmq+embedded:.jobwire/demo" in out
    messages = re.search(r"spring is COMPLETED: (\d+) messages, (\d+) sent to \S+, (\d+) refused", out)
    assert messages, out
    assert int(messages[1]) == int(messages[2]) + int(messages[3])
    outbox = (tmp_path / ".jobwire" / "demo" / "outbox.jsonl").read_text().splitlines()
    assert len({json.loads(line)["channelId"] for line in outbox}) == len(outbox) == int(messages[2])
    assert (tmp_path / ".jobwire" / "demo" / "valkey").is_dir()
    assert "ConnectionError: the mail server is busy" in (tmp_path / ".jobwire" / "demo" / "workers.log").read_text()

    stores = [f"{protocol}+embedded:.jobwire/demo" for protocol in ("bullmq", "bridgemq", "monque", "pgboss")]
    examined = spawn("doctor", *stores)
    assert (examined.code, examined.out.count("is healthy")) == (0, 4), examined

    listed = spawn("jobs", "images", "--state", "completed", "--url", "bullmq+embedded:.jobwire/demo", "--json")
    assert {json.loads(line)["name"] for line in listed.out.splitlines()} == {"thumbnail"}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("spark-apart")
@pytest.mark.usefixtures("quick_spark")
def test_its_json_accounts_for_every_job_and_names_the_report_of_all_stores(spawn: Call, tmp_path: Path) -> None:
    said = spawn("demo", "--seconds", "2", "--rate", "50", "--json")
    report = said.json
    assert report["report"] is not None, said.err
    page = (tmp_path / report["report"]).read_text()
    for protocol in ("bullmq", "bridgemq", "pgboss", "monque"):
        assert f"{protocol}</" in page, protocol
    assert (report["nothing_lost"], report["interrupted"]) == (True, False)
    stores = {store["protocol"]: store["queues"] for store in report["stores"]}
    assert list(stores) == ["bullmq", "bridgemq", "monque", "pgboss"]
    for queue in (queue for queues in stores.values() for queue in queues):
        assert queue["added"] == queue["completed"] + queue["failed"], queue
        assert 0 < queue["wait_p50"] <= queue["wait_p95"], queue
        assert 0 < queue["run_p50"] <= queue["run_p95"], queue
    [mail] = [queue for queue in stores["bullmq"] if queue["queue"] == "mail"]
    assert mail["retried"] > 0


@pytest.mark.slow
def test_ctrl_c_ends_it_cleanly(start: Call) -> None:
    demo = start("demo", "--seconds", "600", "--rate", "50", "--no-report")
    for line in demo.stdout:
        if " added, " in line and " 0 added" not in line:
            break
    demo.send_signal(signal.SIGINT)
    out, err = demo.communicate(timeout=30)
    assert (demo.returncode, err) == (0, ""), out + err
    assert "✓ nothing lost" in out


@pytest.mark.slow
def test_in_a_terminal_it_draws_a_table_and_serves_the_dashboard_until_ctrl_c(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    short = "from jobwire.cli import main; from jobwire.cli.demo import command; command._SECONDS = 1; "
    script = f"{short}raise SystemExit(main(['demo', '--no-report', '--rate', '50']))"
    ours, theirs = pty.openpty()
    demo = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, start_new_session=True,
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    try:
        shown = _shown(ours, until="starts afresh")
        page = page_at(address_in(shown))
        demo.send_signal(signal.SIGINT)
        end = _shown(ours)
        assert demo.wait(timeout=30) == 0, end
    finally:
        demo.kill()
        demo.wait()
        os.close(ours)
    for part in ("waiting", "delayed", "jobs/s", "p50 · p95", "mail", "images", "nothing lost", "until Ctrl-C"):
        assert part in shown, shown
    for protocol in ("bullmq", "bridgemq", "monque", "pgboss"):
        assert f"{protocol}+embedded:.jobwire/demo" in page, page
    assert "Traceback" not in shown + end


def _shown(terminal: int, until: str | None = None) -> str:
    """What the terminal shows, to this text or to the end."""
    shown = b""
    while until is None or until not in shown.decode(errors="replace"):
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # Linux says so when the last writer has closed a terminal
            break
    return shown.decode()


def address_in(text: str) -> str:
    found = re.search(r"the dashboard is live at (http://127\.0\.0\.1:\d+/)", text)
    assert found, text
    return found[1]


def page_at(address: str) -> str:
    with urllib.request.urlopen(address) as response:
        return response.read().decode()


@pytest.mark.slow
def test_a_second_demo_in_the_same_folder_is_refused(start: Call, spawn: Call) -> None:
    first = start("demo", "--seconds", "600", "--rate", "1", "--no-report")
    address_in(first.stdout.readline() + first.stdout.readline())
    second = spawn("demo", "--seconds", "1")
    assert second.code == 1
    assert second.err == "jobwire: another demo is running in ./.jobwire/demo: wait, or give a --folder\n"
    first.send_signal(signal.SIGTERM)
    assert first.wait(timeout=30) == 0


def test_ctrl_c_waits_until_spark_has_started() -> None:
    steps: list[str] = []

    def start() -> None:
        with interrupted_later(lambda: steps.append("interrupted")):
            signal.raise_signal(signal.SIGINT)
            steps.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert steps == ["interrupted", "started"]


def test_a_store_works_on_any_protocol() -> None:
    snapshots: list[Snapshot] = []
    report = asyncio.run(run([DemoStore("memory", "this process", "memory:")], Plan(1, 200), snapshots.append))
    [store] = report.stores
    assert store.total("added") > 100
    assert store.total("added") == store.total("completed") + store.total("failed")
    assert (report.nothing_lost, store.total("left")) == (True, 0)
    assert snapshots[-1].phase == "done"


def test_a_reader_that_goes_away_ends_it_with_that_error_alone() -> None:
    def watch(_: Snapshot) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        asyncio.run(run([DemoStore("memory", "this process", "memory:")], Plan(1, 200), watch))


def test_a_report_names_the_jobs_that_are_missing() -> None:
    short = QueueReport("mail", 10, completed=7, failed=1, left=0, retried=0, wait_p50=None, wait_p95=None,
                        run_p50=None, run_p95=None)  # fmt: skip
    report = Report((StoreReport("bullmq", "Valkey", "bullmq+embedded:", (short,)),), 1.0, interrupted=False)
    out = Console(file=io.StringIO(), width=100)
    report.show(out)
    assert not report.nothing_lost
    assert report.record()["nothing_lost"] is False
    assert "✗ mail, 2 jobs missing: 10 added ≠ 7 completed + 1 failed + 0 left" in out.file.getvalue()


@pytest.mark.parametrize(("interrupted", "good"), [(True, True), (False, False)])
def test_jobs_may_be_left_only_when_the_demo_was_cut_short(interrupted: bool, good: bool) -> None:
    unfinished = QueueReport("mail", 10, 6, 1, 3, 0, None, None, None, None)
    report = Report((StoreReport("bullmq", "Valkey", "", (unfinished,)),), 1.0, interrupted)
    assert (report.nothing_lost, report.good) == (True, good)


def test_a_surplus_on_one_queue_does_not_hide_a_loss_on_another() -> None:
    def queue(completed: int) -> QueueReport:
        return QueueReport("mail", 10, completed, 0, 0, 0, None, None, None, None)

    report = Report((StoreReport("bullmq", "Valkey", "", (queue(9), queue(11))),), 1.0, interrupted=False)
    out = Console(file=io.StringIO(), width=100)
    report.show(out)
    assert not report.nothing_lost
    assert "1 job missing" in out.file.getvalue()
    assert "1 job too many" in out.file.getvalue()


def test_a_job_is_cut_to_what_a_protocol_can_hold() -> None:
    job = NewJob(1, "welcome", priority=10, attempts=3, backoff=Backoff.exponential(1.0))
    bare = fitted(job, Capabilities("bare"))
    assert bare == NewJob(1)
    features = {Feature.JOB_NAMES, Feature.PRIORITIES, Feature.ATTEMPTS, Feature.BACKOFF_EXPONENTIAL}
    rich = Capabilities("rich", frozenset(features), priority="low_first")
    assert fitted(job, rich) == NewJob(1, "welcome", priority=10, attempts=3, backoff=Backoff.exponential(1.0))


def test_the_report_waits_for_spark_and_says_if_it_could_not_be_installed(tmp_path: Path) -> None:
    ready, stages = tmp_path / ".spark", list[str]()

    def end_the_installation(stage: str, _done: int, _total: int | None) -> None:
        stages.append(stage)
        (tmp_path / ".spark.failed").touch()

    with pytest.raises(JobwireError, match=r"Spark could not be installed; pip's words are in .*\.spark\.log"):
        History(tmp_path, []).report(end_the_installation, spark_ready=ready)
    assert stages == ["installing Spark for the report"]
