"""What this suite promises about itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parent.parent / "conftest.py"


def _collect(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(CONFTEST, folder)
    (folder / "test_it.py").write_text(f"import pytest\n\n\n{test}\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:jobwire",
        "--rootdir",
        str(folder),
    ]
    own = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    own["PYTHONPATH"] = os.pathsep.join([str(CONFTEST.parent), own.get("PYTHONPATH", "")])
    return subprocess.run([*command, str(folder)], check=False, capture_output=True, text=True, timeout=60, env=own)


@pytest.mark.slow
def test_no_tests_id_is_its_long_input(tmp_path: Path) -> None:
    done = _collect(tmp_path, '@pytest.mark.parametrize("text", ["x" * 10_000, b"y" * 10_000])\ndef test(text): ...')
    assert done.returncode == 0, done.stdout
    ids = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(ids) == 2
    assert max(map(len, ids)) < 100


@pytest.mark.slow
def test_an_id_of_more_than_200_characters_is_refused(tmp_path: Path) -> None:
    done = _collect(tmp_path, '@pytest.mark.parametrize("text", [1], ids=["x" * 250])\ndef test(text): ...')
    assert done.returncode != 0
    assert "at most 200 characters" in done.stderr + done.stdout
