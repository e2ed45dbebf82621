"""The examples of one feature each run, on a server and on the store in memory, and print what they should."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from .conftest import EXAMPLES

PRINTED = {
    "blocking": ["6", "[6]"],
    "chain": ["receipt-7 shipped by air", "[100, 200]", "1000"],
    "dependencies": ["open", "store returned 1", "store returned 2", "close"],
    "events": ["['added', 'waiting', 'active', 'completed']"],
    "flow": ["{'words': 300, 'missing': ['the page is torn']}"],
    "operate": [
        "failed: {'to': 'ann'} not an address",
        "sent to ann@example.com and sent to bob@example.com",
        "{'completed': 2}",
    ],
    "progress": ["active 50", "letter.txt.pdf ['read letter.txt', 'written']"],
    "rate_limit": ["6 jobs, the last one after more than 0.2 s"],
    "retries": ["news after 3 runs", "failed: there is no such page"],
    "schedule": ["nightly 0 3 * * * {'folder': '/var/tmp'}", "often every 60 s {'folder': '/tmp'}"],
    "unique": ["added duplicate True", "['added', 'duplicate', 'added']"],
}
IN_A_PROCESS = {
    "processes": ["95", "failed: the process that ran the handler died (exit code 1)", "25"],
}
"""Those whose functions have to be imported again in a child process."""
ELSEWHERE = {"claim", "fastapi_app", "first", "flask_app", "from_celery", "tasks"}
"""Those with tests of their own: here and in test_readme.py."""


def run(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **environment: str
) -> list[str]:
    """Runs an example as a program, in this process, which saves the start of another one."""
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("store", ["a server", "memory:"])
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_shows(
    name: str,
    store: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = request.getfixturevalue("jobwire_memory_url" if store == "memory:" else "jobwire_url")
    assert run(name, monkeypatch, capsys, JOBWIRE_URL=url) == PRINTED[name]


def test_a_row_and_its_job_are_committed_together(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = run("transaction", monkeypatch, capsys, DATABASE_URL=database, JOBWIRE_URL=f"pgboss+{database}")
    assert printed == ["parcel 1", "rolled back: not in stock None", "[(1, True)]"]


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_A_PROCESS)
def test_an_example_runs_as_a_process(name: str, jobwire_url: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("JOBWIRE_URL", jobwire_url)
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()) == (0, IN_A_PROCESS[name]), done.stderr


def test_every_example_is_run_and_describes_itself() -> None:
    files = sorted(EXAMPLES.glob("*.py"))
    assert {path.stem for path in files} == {*PRINTED, *IN_A_PROCESS, "transaction"} | ELSEWHERE
    assert 15 <= len(files) <= 20
    for path in files:
        described = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert "JOBWIRE_URL" in described, f"{path.name} does not name its store"
        if path.stem not in ELSEWHERE:
            assert f"python {path.name}" in described, f"{path.name} does not tell how it is run"


def test_the_list_of_examples_has_every_file() -> None:
    listed = {*re.findall(r"`(\w+\.py|\w+/)`", (EXAMPLES / "README.md").read_text())}
    there = {path.name for path in EXAMPLES.glob("*.py")} | {f"{path.parent.name}/" for path in EXAMPLES.glob("*/*")}
    assert listed == {name for name in there if not name.startswith("__")}
