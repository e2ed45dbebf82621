"""Every command explains itself, and explaining loads nothing heavy."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys

import pytest

COMMANDS = [
    *("init", "import-channels", "channels", "batches", "templates", "create", "preview", "start", "pause", "resume"),
    *("cancel", "rate", "worker", "list", "status", "watch", "report", "purge"),
]


@pytest.mark.parametrize("command", [*COMMANDS, "channels activate", "templates add"])
def test_every_command_explains_itself_with_an_example(call, command):
    said = call(*command.split(), "--help")
    assert (said.code, said.err) == (0, "")
    assert f"jobwire campaign {command}" in said.out.partition("Examples")[2], said.out
    assert "--queue-schema" in said.out


def test_the_group_lists_its_commands(call):
    said = call("--help")
    for command in COMMANDS:
        assert f" {command} " in said.out, said.out


def test_the_help_loads_neither_the_driver_nor_tables():
    heavy = ("psycopg", "jobwire.embedded", "rich.table", "jobwire.campaigns", "jobwire.cli.commands.campaign.session")
    program = f"import sys, jobwire.cli.app; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", ["purge", "views"])
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(f"jobwire.cli.commands.campaign.{name}"))
    assert result.attempted
    assert not result.failed
