"""The walk through the pipeline in its documentation, command for command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "pipeline" / "index.md"
CHILD = Path(__file__).with_name("walk_child.py")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark-apart"),
    pytest.mark.usefixtures("quick_spark"),
    pytest.mark.timeout(900),
]


def commands() -> list[str]:
    """The shell lines of the walk, which is the first section with any."""
    walk = PAGE.read_text().partition("## A walk through it")[2].partition("\n## ")[0]
    return [line for block in re.findall(r"```sh\n(.*?)```", walk, re.DOTALL) for line in block.splitlines()]


def programs() -> list[str]:
    """Returns the Python blocks, for the stores of the walk. test_campaigns.py runs the one about campaigns."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    ours = [
        re.sub(r'"(bullmq|pgboss)\+[^"]*"', r'"\1+embedded:here"', one) for one in blocks if "deliveries" not in one
    ]
    assert len(ours) == 2
    return ours


def test_the_walk_in_the_documentation_leads_where_it_says(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("JOBWIRE_URL", None)
    lines = commands()
    done = subprocess.run(
        [sys.executable, str(CHILD), json.dumps(lines), *programs()],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\| *state\|count\|", done.stdout)
    said: list[str] = []
    for line, (code, out, err) in zip(lines, json.loads(done.stdout.splitlines()[-1]), strict=True):
        assert code == 0, f"{line}\n{out}\n{err}"
        said.append(out)
    first, again, waiting = said[1:4]
    assert "3 jobs added, 0 there before" in first
    assert "0 jobs added, 3 there before" in again
    assert re.search(r"waiting +3", waiting)
    page = (tmp_path / "report" / "report.html").read_text()
    assert "welcome" in page
    assert "possible" in said[-3]
    assert "3 jobs moved to welcome" in said[-2]
    assert re.search(r"waiting +3", said[-1])
