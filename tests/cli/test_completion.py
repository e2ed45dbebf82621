"""completion: scripts for shells, and the names that a shell gets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobwire import Queue, connect
from jobwire.cli.completing import queue_names, store_names

Call = Callable[..., Any]


def test_a_shell_completes_commands_and_queues(
    on_queue: Call, jobwire_url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """In a real bash, with the script that the command prints."""
    on_queue(lambda queue: queue.add(1))
    program = tmp_path / "jobwire"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m jobwire "$@"\n')
    program.chmod(0o755)
    script = """
    source <(jobwire completion bash)
    for words in "jobwire cou" "jobwire counts em"; do
        COMP_WORDS=($words); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _jobwire_completion jobwire
        echo "${COMPREPLY[@]}"
    done
    """
    found = {**environment, "PATH": f"{tmp_path}:{os.environ['PATH']}", "JOBWIRE_URL": jobwire_url}
    done = subprocess.run(["bash", "-c", script], env=found, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "counts\nemails\n", ""), done


@pytest.mark.parametrize(("shell", "words"), [("zsh", "#compdef jobwire"), ("fish", "complete --command jobwire")])
def test_other_shells_have_scripts(call: Call, shell: str, words: str) -> None:
    said = call("completion", shell)
    assert said.code == 0
    assert said.out.startswith(words)
    assert call("completion", "csh").code == 2


def test_queues_of_every_store_are_offered(on_every: Call, every_url: str) -> None:
    on_every(every_url, lambda queue: queue.add(1))
    assert list(queue_names(every_url, None)) == ["emails"]


def test_names_that_a_shell_would_act_on_are_not_offered(jobwire_url: str, on_queue: Call) -> None:
    async def add(queue: Queue) -> None:
        async with connect(jobwire_url) as connection:
            for name in ("plain", "$(rm -rf x)", "a;b", "a b", "`x`", "'", "{tag}"):
                await Queue(name, connection).add(1)

    on_queue(add)
    assert list(queue_names(jobwire_url, None)) == ["emails", "plain", "{tag}"]


def test_a_store_that_does_not_answer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not queue_names(f"bullmq+redis://127.0.0.1:{silent.getsockname()[1]}/0", None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JOBWIRE_URL", raising=False)
    assert not queue_names(None, None)
    assert list(tmp_path.iterdir()) == [], "no embedded server was started"
    assert not queue_names("nonsense", None)
    assert not queue_names(None, "unknown")


def test_stores_of_the_profiles_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not store_names()
    (tmp_path / "jobwire.toml").write_text('[stores]\nstaging = "memory:"\nprod = "memory:"\n')
    assert list(store_names()) == ["prod", "staging"]
    (tmp_path / "jobwire.toml").write_text("[stores")
    assert not store_names()
