"""Workers as Spark tasks: each job to one final state, and what the lake keeps of it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobwire import Job, NewJob, State, Worker
from jobwire.boundary import Claim, Failed, Verdict
from jobwire.cli import main
from jobwire.errors import InvalidOption, JobwireError, StoreUnavailable
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.pointers import read_table
from jobwire.pipeline.lake.run_log import read_runs
from jobwire.pipeline.privacy.record import record_rules, rules_of
from jobwire.pipeline.privacy.rules import EVERYTHING_KEPT, parse_rules
from jobwire.pipeline.stores.address import store_name
from jobwire.pipeline.work import FleetStatus, work
from jobwire.pipeline.work.run_rows import RunRows
from jobwire.pipeline.work.status_files import remove_left_over
from jobwire.sync import Queue
from jobwire.worker.target import BadTarget

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
Place = Callable[[str], str]


def fill(url: str, jobs: int, **options: Any) -> None:
    with Queue("mail", url) as queue:
        queue.add_many([NewJob({"n": number}, **options) for number in range(jobs)])


def counts(url: str) -> dict[State, int]:
    with Queue("mail", url) as queue:
        return {state: count for state, count in queue.counts().items() if count}


def rows(lake: str, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_table(lake, table).to_pylist()
    return found


def never() -> Any:
    """In place of a session: Spark must not be started."""
    raise AssertionError("Spark was started")


def sevens_fail() -> Callable[[Any], Any]:
    """A function within a function goes to Spark's processes as it is: they need not find this module."""

    async def handle(job: Any) -> int:
        if job.data["n"] % 10 == 7:
            raise ValueError(f"{job.data['n']} ends with a seven")
        return int(job.data["n"]) * 2

    return handle


def test_tasks_work_on_every_protocol_and_the_lake_keeps_each_run(spark: Any, url: str, lake: str) -> None:
    fill(url, 200)

    result = work(spark, Lake(lake), "mail", sevens_fail(), url, tasks=2, concurrency=5)

    # Monque has no attempts of its own: its URL allows one retry, for which it waits.
    later = result.retried
    assert (result.completed, result.failed + later, result.good) == (180, 20, True)
    assert counts(url).get(State.COMPLETED, 180) == 180  # some protocols remove them
    assert result.failures == {"ValueError": 20}
    runs, workers = rows(lake, "work_runs"), rows(lake, "work")
    assert Counter(run["verdict"] for run in runs) == {
        "completed": 180,
        **({"retried": 20} if later else {"failed": 20}),
    }
    assert len({run["job_id"] for run in runs}) == 200
    assert {run["error_class"] for run in runs} == {None, "ValueError"}
    unknown = [run for run in runs if run["started_at"] is None or run["started_at"] > run["ended_at"]]
    assert unknown == []
    assert {(one["store"], one["queue"], one["outcome"]) for one in workers} == {(store_name(url), "mail", "idle")}
    assert sorted(one["task"] for one in workers) == [0, 1]
    assert sum(one["completed"] for one in workers) == 180
    assert sum(sum(json.loads(one["failures"]).values()) for one in workers) == 20
    [run] = read_runs(lake)
    assert (run["command"], run["outcome"], run["rows_in"]) == ("work", "ok", 200)
    assert {one["run"] for one in [*runs, *workers]} == {run["run"]}
    assert not (Path(lake) / "workings" / "work" / run["run"]).exists()


KINDS = {
    "async": "async def handle(job): return prices.FACTOR * job.data['n']",
    "thread": "def handle(job): return prices.FACTOR * job.data['n']",
    "process": "def handle(job): return prices.FACTOR * job.data['n']",
    "app": """
from jobwire import App
app = App()
@app.task(queue="mail", name="mail")
async def handle(n: int) -> int: return prices.FACTOR * n
""",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_of_any_kind_is_found_in_a_file_with_its_folder(
    spark: Any, place: Place, lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, kind: str
) -> None:
    url = place("bullmq")
    monkeypatch.setenv("JOBWIRE_URL", url)
    fill(url, 20)
    (tmp_path / f"prices_{kind}.py").write_text("FACTOR = 3\n")
    file = tmp_path / f"shop_{kind}.py"
    file.write_text(f"import prices_{kind} as prices\n{KINDS[kind]}\n")
    monkeypatch.syspath_prepend(tmp_path)  # which a command would leave there for the rest of its process

    options: dict[str, Any] = {} if kind == "app" else {"executor": kind, "concurrency": 2}
    name = "app" if kind == "app" else "handle"
    result = work(spark, Lake(lake), "mail", f"{file}:{name}", tasks=2, **options)

    assert (result.completed, result.good, result.errors) == (20, True, {})
    with Queue("mail", url) as queue:
        assert sorted(job.result for job in queue.jobs(State.COMPLETED)) == [3 * number for number in range(20)]


def test_a_process_that_is_killed_costs_what_a_killed_worker_costs(
    spark: Any, place: Place, lake: str, tmp_path: Path
) -> None:
    url, ledger = place("pgboss"), tmp_path / "ledger"
    fill(url, 60)

    def handle(job: Any) -> None:
        with ledger.open("a") as file:  # a short line is written in one piece
            file.write(f"{job.data['n']} {job.attempts_made}\n")
        if job.data["n"] == 20 and not (ledger.parent / "killed").exists():
            (ledger.parent / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    result = work(spark, Lake(lake), "mail", handle, url, tasks=2, lease=1, recover_every=1)

    assert counts(url) == {State.COMPLETED: 60}
    runs = Counter(int(line.split()[0]) for line in ledger.read_text().splitlines())
    assert set(runs) == set(range(60))
    assert runs[20] == 2
    assert result.left == 0
    assert Counter(one.outcome for one in result.workers) == {"idle": 2, "lost": 1}
    [lost] = [one for one in rows(lake, "work") if one["outcome"] == "lost"]
    [replacement] = [one for one in rows(lake, "work") if one["task_attempt"] > 0]
    assert (replacement["task"], lost["ended_at"]) == (lost["task"], None)
    assert replacement["worker"] != lost["worker"]


def test_workers_that_are_given_a_time_take_jobs_that_come_meanwhile(spark: Any, place: Place, lake: str) -> None:
    url, added = place("bullmq"), []
    fill(url, 1)

    def add_more(status: FleetStatus) -> None:
        if status.completed and not added:
            added.append(status)
            fill(url, 10)

    result = work(spark, Lake(lake), "mail", sevens_fail(), url, tasks=2, seconds=6, watch=add_more)

    assert counts(url) == {State.COMPLETED: 10, State.FAILED: 1}
    assert {one.outcome for one in result.workers} == {"time"}
    assert not result.stopped


def test_a_signal_lets_running_jobs_finish_and_leaves_the_others(spark: Any, place: Place, lake: str) -> None:
    url, seen = place("bullmq"), []
    fill(url, 10_000)

    async def handle(job: Any) -> None:
        import asyncio

        await asyncio.sleep(0.05)

    def interrupt(status: FleetStatus) -> None:
        if status.completed and not status.stopping:
            signal.raise_signal(signal.SIGTERM)
        seen.append(status)

    result = work(spark, Lake(lake), "mail", handle, url, tasks=2, watch=interrupt)

    held = counts(url)
    assert result.stopped
    assert {one.outcome for one in result.workers} == {"stopped"}
    assert held == {State.COMPLETED: result.completed, State.WAITING: 10_000 - result.completed}
    assert result.left == held[State.WAITING]
    assert seen[-1].stopping
    assert any(status.working == 2 and status.rate > 0 and status.left for status in seen)


def stuck() -> Callable[[Any], Any]:
    async def handle(job: Any) -> None:
        import asyncio

        await asyncio.sleep(600)

    return handle


def test_a_second_signal_hands_running_jobs_back(spark: Any, place: Place, lake: str) -> None:
    url = place("bullmq")
    fill(url, 4)

    def interrupt(status: FleetStatus) -> None:
        if status.working == 2 and not status.stopping and counts(url).get(State.ACTIVE, 0) == 2:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    result = work(spark, Lake(lake), "mail", stuck(), url, tasks=2, watch=interrupt)

    assert counts(url) == {State.WAITING: 4}
    assert Counter(run["verdict"] for run in rows(lake, "work_runs")) == {"released": 2}
    assert (result.stopped, result.left, result.good) == (True, 4, True)


def test_a_third_signal_has_spark_kill_the_tasks(spark: Any, place: Place, lake: str) -> None:
    url = place("bullmq")
    fill(url, 4)

    def interrupt(status: FleetStatus) -> None:
        if status.working:
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        work(spark, Lake(lake), "mail", stuck(), url, tasks=1, watch=interrupt)

    [run] = read_runs(lake)
    assert run["outcome"] == "interrupted"
    assert json.loads(run["notes"])["workers"] == 1
    assert sum(counts(url).values()) == 4


def test_a_module_that_the_executors_lack_is_each_workers_error(
    spark: Any, place: Place, lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = place("bullmq")
    fill(url, 3)
    (tmp_path / "only_at_the_driver.py").write_text("def handle(job): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_at_the_driver  # type: ignore[import-not-found]

    result = work(spark, Lake(lake), "mail", only_at_the_driver.handle, url, tasks=2)

    del sys.modules["only_at_the_driver"]
    assert result.errors == {"No module named 'only_at_the_driver'": 2}
    assert (result.good, result.left, counts(url)) == (False, 3, {State.WAITING: 3})
    [run] = read_runs(lake)
    assert (run["outcome"], run["error"]) == ("failed", "No module named 'only_at_the_driver'")


def test_an_error_that_no_table_can_hold_is_kept_without_what_it_can_not(spark: Any, place: Place, lake: str) -> None:
    url = place("bullmq")
    fill(url, 1)

    def handle(job: Any) -> None:
        raise ValueError("half a character: \udcff")

    result = work(spark, Lake(lake), "mail", handle, url, tasks=1)

    [run] = rows(lake, "work_runs")
    assert (run["error"], run["error_class"]) == ("half a character: ?", "ValueError")
    assert (result.failed, result.good) == (1, True)


def test_errors_of_a_lake_with_rules_of_privacy_are_kept_without_covered_values(
    spark: Any, place: Place, lake: str
) -> None:
    url, tables = place("bullmq"), Lake(lake)
    record_rules(tables, parse_rules({"mail": {"$.to": "mask"}}, None))
    with Queue("mail", url) as queue:
        queue.add({"to": "ann@example.org"}, name="for Ann@example.org")

    def handle(job: Any) -> None:
        raise ValueError(f"no mailbox for {job.data.pop('to')}")

    work(spark, tables, "mail", handle, url, tasks=1)

    [run] = rows(lake, "work_runs")
    assert (run["name"], run["error"], run["error_class"]) == ("for ***", "no mailbox for ***", "ValueError")


def test_rows_of_runs_have_no_covered_value_in_id_class_or_at_the_cut_of_a_long_error() -> None:
    rules = parse_rules({"mail": {"$.to": "hash"}}, "a key for tests alone").of_queue("mail")
    assert rules is not None
    claim = Claim(Job("for-ann@example.org", "mail", "mail", {"to": "ann@example.org"}), "token")
    observer = RunRows(0, rules)
    observer.started(claim)
    observer.settled(Failed(claim, "ann@example.org is gone " + "." * 1966 + "ann@example.org"), Verdict.FAILED)
    [row] = observer.take()
    assert [value for value in row if isinstance(value, str) and "ann" in value] == []
    assert str(row.job_id).startswith("hash:")
    assert list(observer.failures) == [row.error_class]


def test_a_given_rule_replaces_the_lakes_own_for_the_same_path_and_leaves_the_others(lake: str) -> None:
    tables = Lake(lake)
    record_rules(tables, parse_rules({"mail": {"$.to": "mask", "$.card": "drop"}}, None))
    lifted = parse_rules({"mail": {"$.to": "keep"}}, None)
    found = [rules_of(tables, "mail", privacy) for privacy in (EVERYTHING_KEPT, lifted)]
    assert [each and each.described for each in found] == [
        ["$.card = drop", "$.to = mask"],
        ["$.card = drop", "$.to = keep"],
    ]
    assert rules_of(tables, "sms", lifted) is None


def test_what_a_killed_fleet_has_left_goes_once_its_run_has_ended(lake: str) -> None:
    files = LakeFiles(lake)
    with Lake(lake).run("work") as killed:
        pass
    with Lake(lake).run("work") as running:
        for run in (killed.id, running.id, "of-a-lake-that-was-copied"):
            files.write(f"workings/fleets/{run}/status/w.json", {})

        remove_left_over(files)

        assert files.folders("workings/fleets") == sorted([running.id, "of-a-lake-that-was-copied"])


def test_an_empty_queue_needs_no_spark(place: Place, lake: str) -> None:
    url = place("bullmq")
    fill(url, 1)
    with Queue("mail", url) as queue:
        queue.admin.drain()

    result = work(never, Lake(lake), "mail", sevens_fail(), url, tasks=2)

    assert (result.workers, result.left, result.good) == ((), 0, True)


def test_what_can_not_work_is_refused_before_spark_starts(place: Place, lake: str) -> None:
    url, tables = place("bullmq"), Lake(lake)
    fill(url, 1)

    with pytest.raises(InvalidOption, match=r"queue: must be a queue of .*; did you mean mail\? \(got 'mial'\)"):
        work(never, tables, "mial", sevens_fail(), url, tasks=2)
    with pytest.raises(InvalidOption, match="tasks"):
        work(never, tables, "mail", sevens_fail(), url, tasks=0)
    with pytest.raises(InvalidOption, match="seconds"):
        work(never, tables, "mail", sevens_fail(), url, tasks=1, seconds=-1)
    with pytest.raises(InvalidOption, match="other processes can reach"):
        work(never, tables, "mail", sevens_fail(), "memory:", tasks=1)
    with pytest.raises(InvalidOption, match="each task makes a worker of its own"):
        work(never, tables, "mail", sevens_fail(), url, tasks=1, worker_id="w1")
    with pytest.raises(BadTarget, match="name its handler or its app"):
        work(never, tables, "mail", Worker("mail", sevens_fail(), url), url, tasks=1)
    with pytest.raises(BadTarget, match="no module 'no_such_shop'"):
        work(never, tables, "mail", "no_such_shop:handle", url, tasks=1)
    with pytest.raises(JobwireError, match=r"there is no file 'more\.zip'"):
        work(lambda: None, tables, "mail", sevens_fail(), url, tasks=1, files=["more.zip"])  # type: ignore[arg-type, return-value]
    with pytest.raises(StoreUnavailable):
        work(never, tables, "mail", sevens_fail(), "bullmq+redis://127.0.0.1:1", tasks=1)
    assert counts(url) == {State.WAITING: 1}


PAGE = Path(__file__).parents[2] / "docs" / "pipeline" / "work.md"


def test_the_page_about_it_leads_where_it_says(
    spark: Any, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    url = place("bullmq")
    monkeypatch.setenv("JOBWIRE_URL", url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    [(title, source), *programs] = re.findall(r'```python(?: title="(.*?)")?\n(.*?)```', PAGE.read_text(), re.DOTALL)
    (tmp_path / title).write_text(source)
    commands = [
        line for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL) for line in block.splitlines()
    ]

    codes = [main(shlex.split(line)[1:]) for line in commands if "spark://" not in line]

    out, err = capfd.readouterr()
    assert codes == [0, 0, 0], err
    assert re.search(r"1 job completed, 1 failed, by 2 workers in .*\n  1 × ValueError", out), out
    names: dict[str, Any] = {"__name__": "__main__"}
    with Queue("emails", url) as queue:
        queue.add({"to": "bo@example.com"})
    for _, program in programs:
        exec(program.replace("bullmq+redis://cache.example:6379/0", url), names)
    assert "1 0 0 {}" in capfd.readouterr().out
    assert (len(names["workers"]), len(names["runs"]), names["failures"]["ValueError"]) == (4, 3, 1)
