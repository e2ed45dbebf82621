"""`jobwire worker` as a service manager runs it."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobwire import NewJob, State

Call = Callable[..., Any]

SHOP = """
import asyncio, logging, os, pathlib, time
from jobwire import Worker

async def handle(job):
    logging.getLogger("shop").info("sending %s", job.data)
    return {"sent": job.data}

async def slow(job):
    while not pathlib.Path("go-on").exists():
        await asyncio.sleep(0.02)
    return "finished"

async def in_a_thread(job):
    await asyncio.to_thread(time.sleep, 120)

worker = Worker("emails", lambda job: {}["address"], os.environ.get("JOBWIRE_TEST_URL"))

def blocking(job):
    raise RuntimeError("the printer is on fire")
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


@pytest.mark.slow
def test_sigterm_lets_running_jobs_finish_and_leaves_with_0(
    start: Call, shop: Path, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    worker = start("worker", "shop:slow", "--queue", "emails", "--concurrency", "2", "--url", jobwire_url)
    on_queue(lambda queue: queue.add_many([NewJob(number) for number in range(5)]))
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.ACTIVE] == 2)
    worker.send_signal(signal.SIGTERM)
    for line in worker.stderr:
        if "stopping: 2 jobs still running" in line:
            break
    (shop / "go-on").touch()
    _, err = worker.communicate(timeout=30)
    assert worker.returncode == 0, err
    assert "stopped: 2 completed, 0 failed" in err
    counts = on_queue(lambda queue: queue.counts())
    assert (counts[State.COMPLETED], counts[State.ACTIVE], counts[State.WAITING]) == (2, 0, 3)


@pytest.mark.slow
def test_every_line_of_the_log_names_the_worker(
    start: Call, shop: Path, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    worker = start("worker", "shop:handle", "--queue", "emails", "--url", jobwire_url)
    on_queue(lambda queue: queue.add("ada", name="welcome"))
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.COMPLETED] == 1)
    worker.send_signal(signal.SIGTERM)
    out, err = worker.communicate(timeout=30)
    assert (worker.returncode, out) == (0, "")
    lines = [re.fullmatch(r"\d\d:\d\d:\d\d (INFO|WARNING) +\[(\S+)\] (.+)", line) for line in err.splitlines()]
    assert all(lines), err
    assert len({line[2] for line in lines if line}) == 1, err
    told = [line[3] for line in lines if line]
    assert told[0] == "started on queue emails, concurrency 1"
    assert "sending ada" in told
    assert any(re.fullmatch(r"completed job 1 \(welcome\) after \d\.\d{3} s", line) for line in told), told


@pytest.mark.slow
def test_the_log_as_json_has_a_record_a_line(
    start: Call, shop: Path, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    worker = start("worker", "shop:blocking", "--queue", "emails", "--url", jobwire_url, "--json")
    on_queue(lambda queue: queue.add(1))
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.FAILED] == 1)
    worker.send_signal(signal.SIGTERM)
    out, err = worker.communicate(timeout=30)
    assert (worker.returncode, err) == (0, "")
    records = [json.loads(line) for line in out.splitlines()]
    [failed] = [record for record in records if record["logger"] == "jobwire.jobs"]
    assert (failed["level"], failed["job"], failed["queue"]) == ("warning", "1", "emails")
    assert {record["worker"] for record in records} == {failed["worker"]}


@pytest.mark.slow
def test_a_worker_object_runs_with_its_own_options(
    start: Call, shop: Path, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    made = f"worker = Worker('emails', handle, {jobwire_url!r}, worker_id='shop-1', concurrency=3)\n"
    (shop / "shop.py").write_text(SHOP + made)
    worker = start("worker", "shop:worker")
    on_queue(lambda queue: queue.add("ada"))
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.COMPLETED] == 1)
    worker.send_signal(signal.SIGINT)
    _, err = worker.communicate(timeout=30)
    assert worker.returncode == 0, err
    assert "[shop-1] started on queue emails, concurrency 3" in err


@pytest.mark.slow
def test_options_for_a_worker_object_are_refused(spawn: Call, shop: Path) -> None:
    (shop / "shop.py").write_text(SHOP + "worker = Worker('emails', handle, 'memory:')\n")
    said = spawn("worker", "shop:worker", "--concurrency", "5")
    assert said.code == 2
    assert "out --concurrency" in said.err, said.err


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["import a_package_that_is_missing", "import redis.no_such_part", "open('/no/file')"])
@pytest.mark.parametrize("target", ["shop:handle", "./shop.py:handle"])
def test_a_fault_inside_the_module_shows_the_traceback_of_that_module(
    spawn: Call, shop: Path, fault: str, target: str
) -> None:
    (shop / "shop.py").write_text(f"{fault}\n")
    said = spawn("worker", target, "--queue", "emails", "--url", "memory:")
    assert said.code == 1
    assert 'shop.py", line 1' in said.err
    assert "jobwire" not in said.err


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["async", "thread", "process"])
def test_a_handler_is_found_in_a_file_with_its_folder(
    *, start: Call, tmp_path: Path, jobwire_url: str, on_queue: Call, eventually: Call, executor: str
) -> None:
    folder = tmp_path / "far away"
    folder.mkdir()
    (folder / "prices.py").write_text("FACTOR = 3\n")
    word = "async def" if executor == "async" else "def"
    (folder / "my-shop.py").write_text(f"import prices\n{word} handle(job):\n    return job.data * prices.FACTOR\n")
    worker = start(
        "worker", "./far away/my-shop.py:handle", "--queue", "emails", "--executor", executor, "--url", jobwire_url
    )
    job = on_queue(lambda queue: queue.add(7))
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.COMPLETED] == 1)
    assert on_queue(lambda queue: queue.get(job.id)).result == 21
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=30)
    assert worker.returncode == 0, err


@pytest.mark.slow
@pytest.mark.parametrize(("name", "words"), [("json.py", "another module is named 'json'"), ("a.b.py", "name.py")])
def test_a_file_that_can_not_be_imported_by_its_name_says_why(
    spawn: Call, tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / name).write_text("def handle(job): ...\n")
    said = spawn("worker", f"shop/{name}:handle", "--queue", "emails", "--url", "memory:")
    assert said.code == 2
    assert words in " ".join(said.err.replace("│", " ").split()), said.err


@pytest.mark.slow
def test_a_worker_waits_for_its_store_and_is_stopped_while_it_waits(start: Call, shop: Path) -> None:
    worker = start(
        *("worker", "shop:handle", "--queue", "emails", "--wait-for-store", "600"),
        *("--url", "bullmq+redis://127.0.0.1:1"),
    )
    assert "waiting up to 600 s for the store" in worker.stderr.readline()
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=30)
    assert worker.returncode == 0, err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_thread_that_a_handler_left_behind_does_not_keep_the_process(
    start: Call, shop: Path, jobwire_url: str, on_queue: Call, eventually: Call
) -> None:
    worker = start("worker", "shop:in_a_thread", "--queue", "emails", "--shutdown-timeout", "0.2", "--url", jobwire_url)
    on_queue(lambda queue: queue.add("ada"))
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.ACTIVE] == 1)
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=60)  # the thread goes on for two minutes
    assert worker.returncode == 0, err
    assert "ending the process: the worker has stopped, but threads are still running (asyncio_0" in err
    assert on_queue(lambda queue: queue.counts())[State.WAITING] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", [("shop:blocking", "--queue", "emails"), ("shop:worker",)], ids=["function", "worker"]
)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_a_failed_run_is_logged_with_its_traceback(
    start: Call,
    shop: Path,
    environment: dict[str, str],
    jobwire_url: str,
    on_queue: Call,
    *,
    eventually: Call,
    target: tuple[str, ...],
    as_json: bool,
) -> None:
    environment["JOBWIRE_TEST_URL"] = jobwire_url
    place = ("--url", jobwire_url) if len(target) > 1 else ()
    worker = start("worker", *target, *place, *(["--json"] if as_json else []))
    on_queue(lambda queue: queue.add("ada"))
    eventually(lambda: on_queue(lambda queue: queue.counts())[State.FAILED] == 1)
    worker.send_signal(signal.SIGTERM)
    out, err = worker.communicate(timeout=30)
    error = "RuntimeError: the printer is on fire" if len(target) > 1 else "KeyError: 'address'"
    assert f"job 1 (emails) failed in attempt 1: {error}" in (out if as_json else err)
    if not as_json:
        assert "Traceback (most recent call last):" in err
        return
    [line] = [line for line in map(json.loads, out.splitlines()) if "failed in attempt" in line["message"]]
    assert (line["level"], line["queue"], line["job"], line["attempt"]) == ("error", "emails", "1", 1)
    assert (line["category"], line["error"]) == ("transient", error.partition(":")[0])
    assert line["traceback"].endswith(error)


@pytest.mark.slow
def test_a_dict_of_queues_is_worked_in_all_or_in_those_that_are_named(
    spawn: Call, shop: Path, jobwire_url: str, on_queue: Call
) -> None:
    (shop / "shop.py").write_text(SHOP + "handlers = {'emails': handle, 'other': handle}\n")
    on_queue(lambda queue: queue.add("ada"))
    said = spawn("worker", "shop:handlers", "--queue", "other", "--burst", "--url", jobwire_url)
    assert said.code == 0, said.err
    assert on_queue(lambda queue: queue.counts())[State.WAITING] == 1
    said = spawn("worker", "shop:handlers", "--burst", "--url", jobwire_url)
    assert (said.code, "started on queues emails, other, concurrency 1" in said.err) == (0, True), said.err
    assert on_queue(lambda queue: queue.counts())[State.COMPLETED] == 1


APP = """
class App:
    def make_worker(self, *, queues=(), **options):
        return Worker({name: handle for name in queues or ("emails", "reports")}, **options)

app = App()
"""


@pytest.mark.slow
def test_an_app_makes_its_worker_from_the_options(spawn: Call, shop: Path, jobwire_url: str, on_queue: Call) -> None:
    (shop / "shop.py").write_text(SHOP + APP)
    on_queue(lambda queue: queue.add("ada"))
    said = spawn("worker", "shop:app", "--queue", "emails", "--concurrency", "3", "--burst", "--url", jobwire_url)
    assert said.code == 0, said.err
    assert "started on queue emails, concurrency 3" in said.err
    assert "completed job 1" in said.err
    assert on_queue(lambda queue: queue.counts())[State.COMPLETED] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("shop:handlers", "--queue", "email"), "did you mean emails?"),
        (("shop:handle", "--queue", "a", "--queue", "b"), "a handler of one queue"),
        (("shop:handle",), "name its queue with --queue"),
        (("shop:worker", "--queue", "emails"), "leave out --queue"),
        (("shop:number",), "neither a Worker nor a function nor a dict of queues"),
    ],
)
def test_a_target_that_does_not_fit_its_options_is_refused(
    spawn: Call, shop: Path, arguments: tuple[str, ...], words: str
) -> None:
    (shop / "shop.py").write_text(SHOP + "number = 7\nhandlers = {'emails': handle}\n")
    said = spawn("worker", *arguments)
    assert said.code == 2
    assert words in " ".join(said.err.replace("│", " ").split()), said.err
