"""Results of runs side by side are all kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from faults import report
from faults.inject import FAULTS
from faults.report import Results
from faults.run import Figures, Report


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts the file of results and the documentation into a folder of the test's own."""
    monkeypatch.setattr(report, "_FILE", tmp_path / "results.json")
    monkeypatch.setattr(report, "_DOCS", tmp_path)
    (tmp_path / "images").mkdir()
    made = tmp_path / "faults.md"
    made.write_text(f"before {report._BEGIN} old {report._END} after")
    return made


def test_runs_that_end_at_the_same_time_lose_no_result(page: Path) -> None:
    def add(fault: str) -> None:
        Results.read().add(Report("bullmq", fault, 1, 2, Figures(3, 0, 3, 0, 0), (30, 31), 4.0, ()))

    with ThreadPoolExecutor(len(FAULTS)) as runs:
        list(runs.map(add, FAULTS))
    assert {one.fault for one in Results.read().all()} == set(FAULTS)
    text = page.read_text()
    assert text.startswith("before ")
    assert text.endswith(" after")
    assert " old " not in text
    assert all(f"| `{fault}` | bullmq | 2 | 3 |" in text for fault in FAULTS)
