"""Type checkers accept the good uses of tasks and refuse the bad ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
USES = HERE / "typed_uses.py"
ROOT = HERE.parent.parent

pytestmark = pytest.mark.slow


def refused_lines() -> set[int]:
    return {number for number, line in enumerate(USES.read_text().splitlines(), 1) if line.endswith("# refused")}


def test_pyright(tmp_path: Path) -> None:
    (tmp_path / USES.name).write_text(USES.read_text())
    settings = {"extraPaths": [str(ROOT / "src")], "typeCheckingMode": "strict", "reportUnusedFunction": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = {one["range"]["start"]["line"] + 1: one["message"] for one in found if one["severity"] == "error"}
    assert errors.keys() == refused_lines(), errors


def test_mypy(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--disable-error-code=type-arg", "--follow-imports=silent"]
    command += ["--cache-dir", str(tmp_path), "--show-error-end", "--no-error-summary", str(USES)]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    lines = [re.match(r".*typed_uses\.py:(\d+):.*?: (error: .*)", line) for line in done.stdout.splitlines()]
    errors = {int(found[1]): found[2] for found in lines if found}
    assert errors.keys() == refused_lines(), done.stdout + done.stderr
