"""The examples run as processes of their own, and their web applications in this one."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from jobwire.embedded import Server

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Imports an example, with these variables in the environment."""

    def load(name: str, **environment: str) -> ModuleType:
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)  # where annotations of tasks are looked up
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def database(jobwire_postgres: Server, unique: str) -> Iterator[str]:
    """The URL of a database of the test's own."""
    name = sql.Identifier(unique)
    with psycopg.connect(jobwire_postgres.url, autocommit=True) as server:
        server.execute(sql.SQL("create database {}").format(name))
        parts = conninfo_to_dict(jobwire_postgres.url)
        host, port = parts["host"], parts.get("port", "5432")
        yield f"postgresql://{parts['user']}:{parts.get('password', '')}@{host}:{port}/{unique}"
        server.execute(sql.SQL("drop database {} with (force)").format(name))


@contextlib.contextmanager
def running(log: Path, *command: Any, cwd: Path = EXAMPLES, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program during the block and ends it with SIGTERM. It has to end well."""
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*map(str, command)], cwd=cwd, env={**os.environ, **environment}, stdout=sink, stderr=subprocess.STDOUT
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)
    assert process.returncode == 0, log.read_text()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition: Callable[[], Any], what: str, log: Path | None = None) -> Any:
    """Returns what the condition returns once that is true."""
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}: {log.read_text() if log else ''}"
        time.sleep(0.05)
    return found
