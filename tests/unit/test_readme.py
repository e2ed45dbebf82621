"""The README shows what runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_examples_are_the_files_word_for_word() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks == [(ROOT / "examples" / name).read_text() for name in ("first.py", "tasks.py")]


PRINTED = {
    "first.py": [f"{n} {{'sent': '{who}@example.com'}}" for n, who in enumerate("abc", 1)],
    "tasks.py": ["a@example.com 13"],
    "claim.py": ["a.png completed", "b.png completed", "c.txt failed"],
}


@pytest.mark.parametrize("store", ["a server", "memory:"])
@pytest.mark.parametrize("example", PRINTED)
def test_an_example_runs(request: pytest.FixtureRequest, tmp_path: Path, store: str, example: str) -> None:
    url = store if store == "memory:" else request.getfixturevalue("jobwire_url")
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / example],
        cwd=tmp_path,
        env={**os.environ, "JOBWIRE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == PRINTED[example]


def test_the_example_of_claiming_by_hand_is_the_file_word_for_word() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "workers.md").read_text(), re.DOTALL)
    assert (ROOT / "examples" / "claim.py").read_text() in blocks


def test_every_make_target_that_the_docs_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^    |`)make ([a-z-]+)", README + (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    assert named >= {"run", "test", "lint"}
    assert named <= targets


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_every_link_to_a_file_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / page).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_command_that_the_readme_names_exists() -> None:
    from jobwire.cli.app import app

    known = {command.callback.__name__ for command in app.registered_commands if command.callback}
    known |= {group.typer_instance.info.name for group in app.registered_groups if group.typer_instance}
    named = set(re.findall(r"^(?:    |\* `)jobwire ([a-z]+)", README, re.MULTILINE))
    assert named == {"add", "queues", "jobs", "job", "retry", "worker", "dashboard", "demo", "doctor", "pipeline"}
    assert named <= known
