"""docs/campaigns-walkthrough.md shows what runs: every command is run, and its output compared."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jobwire import embedded

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "campaigns-walkthrough.md").read_text()


def steps() -> Iterator[tuple[str, str]]:
    """Yields the commands of the page, each with the output that follows it."""
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        assert block.startswith("$ ")
        for step in block.removeprefix("$ ").split("\n$ "):
            command, _, output = step.partition("\n")
            yield command, output.rstrip("\n")


def matches(output: str, expected: str) -> bool:
    """Compares line ends without trailing spaces. `…` stands for any text."""
    shown = "\n".join(line.rstrip() for line in output.rstrip("\n").split("\n"))
    return re.fullmatch(".*?".join(map(re.escape, expected.split("…"))), shown, re.DOTALL) is not None


def test_the_walk_works_from_an_empty_folder(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobwire = tmp_path / "bin" / "jobwire"
    jobwire.parent.mkdir()
    jobwire.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m jobwire "$@"\n')
    jobwire.chmod(0o755)
    monkeypatch.setenv("PATH", str(jobwire.parent), prepend=":")
    done = 0
    with ExitStack() as stack:
        stack.enter_context(embedded.postgres(tmp_path / ".jobwire"))  # or each command would start the server
        for command, expected in steps():
            words = shlex.split(command)
            if words[-1] == "&":
                background = stack.enter_context(subprocess.Popen(["jobwire", *words[1:-1]], stderr=subprocess.PIPE))
                stack.callback(background.send_signal, signal.SIGTERM)
                continue
            if words[:2] == ["jobwire", "campaign"] and "||" not in words:
                said = call(*words[2:])  # in this process, which is faster
                code, output = said.code, said.out
            else:
                run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
                code, output = run.returncode, run.stdout
            assert code == 0, command
            assert matches(output, expected), f"{command}\nshown:\n{output}\nexpected:\n{expected}"
            done += 1
    assert background.returncode == 0
    assert done > 15
