"""Every code block of the documentation is run here, or in the test that is named here, or is of a kind that can't
run."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from jobwire.cli.app import app

from .blocks import DOCS, ROOT, Block, blocks, outside_fences, pages
from .running import Session

RUN = {"python", "console"}
CHECKED = {"sh": "command lines, compared with the program's own", "toml": "parsed", "json": "parsed"}
NOT_RUN = {
    "text": "output of a program, a message or a URL",
    "ts": "the Node.js side, of which the interop tests run the like",
    "js": "the Node.js side",
    "sql": "for a database of the reader's",
    "dockerfile": "needs a container engine",
    "ini": "for a service manager",
    "yaml": "for other programs",
}
ELSEWHERE = {
    "testing.md": "tests/tasks/test_testing_page.py",
    "campaigns.md": "tests/campaigns/sending/test_page.py",
    "campaigns-api.md": "tests/campaigns/api/test_serve.py",
    "campaigns-transports.md": "tests/campaigns/transports/test_page.py",
    "campaigns-walkthrough.md": "tests/campaigns/cli/test_walkthrough.py",
    "pipeline/index.md": "tests/pipeline/test_walkthrough.py",
    "pipeline/work.md": "tests/pipeline/test_work.py",
}
COMMANDS = {"rate-limits.md", "retries.md", "schedules.md", "unique-jobs.md", "what-to-do.md"}
"""Pages whose command lines are run, too: they need neither another host nor a program of the reader's."""
PROTOCOL = {
    "from-pgboss.md": "pgboss",
    "transactions.md": "pgboss",
    "protocols/pgboss.md": "pgboss",
    "beside-monque.md": "monque",
    "protocols/monque.md": "monque",
    "protocols/bridgemq.md": "bridgemq",
}
"""The protocol of JOBWIRE_URL on a page. On the others it is BullMQ."""


def with_code() -> list[str]:
    return [
        page
        for page in pages()
        if page not in ELSEWHERE and (page in COMMANDS or any(one.language in RUN for one in blocks(page)))
    ]


def of_kind(*languages: str) -> list[Block]:
    return [block for page in pages() for block in blocks(page) if block.language in languages]


@pytest.mark.parametrize("page", with_code())
def test_the_blocks_of_a_page_run(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    commands = tmp_path / ".bin"
    commands.mkdir()
    for name, words in {"jobwire": [sys.executable, "-m", "jobwire"], "python": [sys.executable]}.items():
        (commands / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(commands), prepend=os.pathsep)
    url_of: Callable[[str], str] = lambda protocol: request.getfixturevalue(f"jobwire_{protocol}_url")  # noqa: E731
    monkeypatch.setenv("JOBWIRE_URL", url_of(PROTOCOL.get(page, "bullmq")))
    session = Session(page, tmp_path, url_of, capfd.readouterr)
    try:
        for block in blocks(page):
            if (block.language in RUN or (block.language == "sh" and page in COMMANDS)) and not block.title.startswith(
                "examples/"
            ):
                session.run(block)
    finally:
        session.close()


def test_every_block_is_of_a_kind_that_is_run_or_checked_or_can_not_be() -> None:
    known = {*RUN, *CHECKED, *NOT_RUN}
    strange = [(one.where, one.language) for page in pages() for one in blocks(page) if one.language not in known]
    assert strange == []


@pytest.mark.parametrize("page", pages())
def test_no_code_escapes_by_being_indented(page: str) -> None:
    lines = outside_fences(page).splitlines()
    indented = [line for before, line in zip(["", *lines], lines, strict=False) if line[:4] == "    " and not before]
    assert [line for line in indented if not line.lstrip().startswith(("*", "-", "1"))] == []


def test_an_excerpt_of_an_example_is_in_its_file() -> None:
    """The examples themselves are run by tests/examples."""
    for block in (one for one in of_kind("python") if one.title.startswith("examples/")):
        assert block.source in (ROOT / block.title).read_text(), f"{block.where} differs from {block.title}"


def test_pages_that_are_run_elsewhere_are_named_there() -> None:
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text(), f"{test} does not run {page}"


def test_toml_and_json_can_be_parsed() -> None:
    for block in of_kind("toml", "json"):
        try:
            (tomllib.loads if block.language == "toml" else json.loads)(block.source)
        except ValueError as fault:
            pytest.fail(f"{block.where}: {fault}")


def test_command_lines_are_those_of_the_program() -> None:
    root = get_command(app)
    for block in of_kind("sh"):
        for line in re.sub(r"\\\n\s*", " ", block.source).splitlines():
            words = shlex.split(re.split(r" (?:[|<>&]|\|\|) ?", line)[0], comments=True)
            while words and "=" in words[0]:
                del words[0]  # a variable of the environment
            if words[:1] == ["jobwire"]:
                _check(root, words[1:], f"{block.where}: {line}")


def _check(command: Any, words: list[str], where: str) -> None:
    below = getattr(command, "commands", None)
    if below is not None:
        assert words, where
        assert words[0] in below, where
        _check(below[words[0]], words[1:], where)
        return
    try:
        command.make_context(command.name, words)  # raises for what it does not know
    except Exception as wrong:
        pytest.fail(f"{where}: {wrong!r}")


def test_packages_to_install_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [(DOCS / page).read_text() for page in pages()] + [(ROOT / "README.md").read_text()]
    named = {
        extra for text in texts for found in re.findall(r"jobwire\[([\w,]+)\]", text) for extra in found.split(",")
    }
    assert named <= {*project["optional-dependencies"]}
