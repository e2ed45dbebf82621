"""docs/testing.md shows what runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_blocks_of_the_page_are_tests_that_pass(tmp_path: Path) -> None:
    program, *tests = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL)
    (tmp_path / "shop.py").write_text(program)
    (tmp_path / "test_shop.py").write_text("\n\n".join(tests))
    options = ["-o", "asyncio_mode=auto", "-W", "error", "-p", "no:jobwire", "-p", "jobwire_pytest"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", "base", *options, "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    defined = len(re.findall(r"^(?:async )?def test_", "\n".join(tests), re.MULTILINE))
    assert f"{defined + 4} passed" in run.stdout, run.stdout + run.stderr  # one of them with five protocols
