"""`jobwire campaign …` on tables and queues of the test's own."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer.main
from psycopg import sql

from campaigns.cli.terminal import Terminal
from command_line import Said, started_here
from jobwire.cli import main
from jobwire.embedded import Server

Run = Callable[..., Said]
_built = functools.cache(typer.main.get_command)  # Typer builds all commands for each call, which takes half its time


@pytest.fixture
def at(jobwire_postgres: Server, unique: str) -> Iterator[list[str]]:
    """The options that name the database of the test."""
    queues = f"{unique}_queues"
    yield ["--url", jobwire_postgres.url, "--schema", unique, "--queue-schema", queues]
    with psycopg.connect(jobwire_postgres.url, autocommit=True) as connection:
        connection.execute("SET client_min_messages TO warning")
        for name in (unique, queues, f"{queues}_jobwire"):
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process, in a folder of the test's own."""
    monkeypatch.setattr(typer.main, "get_command", _built)
    monkeypatch.chdir(tmp_path)
    for name in ("JOBWIRE_URL", "JOBWIRE_CAMPAIGN_URL"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object) -> Said:
        capfd.readouterr()
        code = main(["campaign", *map(str, arguments)])
        return Said(code, *capfd.readouterr())

    return run


@pytest.fixture
def run(call: Run, at: list[str]) -> Run:
    """Runs a command line on the database of the test."""
    return lambda *arguments: call(*arguments, *at)


@pytest.fixture
def tables(run: Run) -> None:
    """The campaign tables and the queues."""
    assert run("init").code == 0


@pytest.fixture
def campaign(run: Run, tables: None, tmp_path: Path) -> Callable[..., str]:
    """Creates a campaign for a number of channels by commands, and returns its name."""

    def make(channels: int, name: str = "spring", *options: object, rate: int = 100_000) -> str:
        file = tmp_path / f"{name}.csv"
        file.write_text("username\n" + "".join(f"{name}_{one}\n" for one in range(channels)))
        assert run("import-channels", file, "--batch", f"{name} channels").code == 0
        assert run("templates", "add", f"{name} text", "--content", "Hello {username}").code == 0
        made = run(
            "create", name, "--batch", f"{name} channels", "--template", f"{name} text", "--rate", rate, *options
        )
        assert made.code == 0, made
        return name

    return make


@pytest.fixture
def database(jobwire_postgres: Server, unique: str, tables: None) -> Iterator[psycopg.Connection[Any]]:
    """A connection that sees the tables of the test."""
    with psycopg.connect(jobwire_postgres.url, autocommit=True) as connection:
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(unique)))
        yield connection


@pytest.fixture
def spawn(tmp_path: Path, at: list[str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a command line as a process of its own. One that still runs in the end is killed."""
    with started_here(cwd=tmp_path) as start:
        yield lambda *arguments: start("campaign", *arguments, *at)


@pytest.fixture
def terminal(tmp_path: Path, at: list[str]) -> Iterator[Callable[..., Terminal]]:
    """Starts a command line in a terminal of 80 columns."""
    opened: list[Terminal] = []

    def start(*arguments: object) -> Terminal:
        opened.append(Terminal([sys.executable, "-m", "jobwire", "campaign", *map(str, arguments), *at], tmp_path))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Lets stdin be a terminal at which a text is typed."""
    files: list[Any] = []

    def answer(text: str) -> None:
        keyboard, screen = os.openpty()
        os.write(keyboard, text.encode())
        files.extend((os.fdopen(screen), os.fdopen(keyboard, "wb")))
        monkeypatch.setattr(sys, "stdin", files[-2])

    yield answer
    for file in files:
        file.close()
