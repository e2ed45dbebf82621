"""docs/cli.md has every command, and its examples are command lines that the program takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from jobwire.cli import exit_codes
from jobwire.cli.app import app

Call = Callable[..., Any]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
ROOT: Any = get_command(app)
OTHER_PAGES = {"pipeline", "campaign"}
"""Groups with pages of their own."""


def commands() -> dict[str, Any]:
    """Returns every command by its words: `add`, `schedules list`."""
    found: dict[str, Any] = {}
    for name, command in ROOT.commands.items():
        if name in OTHER_PAGES or command.hidden:
            continue
        below = getattr(command, "commands", None)
        found |= {f"{name} {one}": inner for one, inner in below.items()} if below else {name: command}
    return found


def examples() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


def test_every_command_has_an_example_on_the_page() -> None:
    lines = examples()
    assert [name for name in commands() if not any(line.startswith(f"jobwire {name}") for line in lines)] == []


def test_every_command_is_described_on_the_page() -> None:
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    missing = [name for name in commands() if f"`{name}`" not in rows and f"`{name.partition(' ')[0]}`" not in rows]
    assert missing == []


@pytest.mark.parametrize("line", examples())
def test_an_example_is_understood(line: str) -> None:
    words = shlex.split(re.split(r" [|<] ", line)[0])[1:]
    known = commands()
    name = next(name for name in (" ".join(words[:2]), words[0]) if name in known)
    command = known[name]
    with command.make_context(name, words[len(name.split()) :]) as context:  # raises for what it does not know
        assert context.command is command


@pytest.mark.parametrize("name", commands())
def test_every_command_explains_itself_with_an_example(call: Call, name: str) -> None:
    said = call(*name.split(), "--help")
    assert (said.code, said.err) == (0, "")
    assert f"jobwire {name}" in said.out.partition("Examples")[2], said.out
    assert "<bool>" not in said.out, "no option takes a word for yes or no"


def test_the_exit_codes_of_the_page_are_those_of_the_program() -> None:
    rows = dict(re.findall(r"^\| (\d+) \| (\w+)", PAGE, re.MULTILINE))
    codes = (exit_codes.DONE, exit_codes.REFUSED, exit_codes.USAGE, exit_codes.UNREACHABLE, exit_codes.NOTHING_FOUND)
    assert [rows[str(code)] for code in codes] == ["done", "refused", "usage", "the", "nothing"]
    assert rows[str(exit_codes.FAILED_CHECKS)] == "failed"


def test_a_paragraph_of_help_is_one_line_that_the_terminal_wraps() -> None:
    """Typer keeps the line breaks of a docstring, which then stand in the middle of a line of the terminal."""
    groups = {f"{group} {name}": one for group in OTHER_PAGES for name, one in ROOT.commands[group].commands.items()}
    pages = {**commands(), **groups}
    broken = [name for name, one in pages.items() for part in (one.help or "").split("\n\n") if "\n" in part.strip()]
    assert broken == []
