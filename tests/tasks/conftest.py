"""Fixtures of the tests of tasks."""

from __future__ import annotations

import pytest

from tasks.tested_app import seen


@pytest.fixture
def nothing_seen() -> None:
    """Empties the list of what the tasks of the tested app have done."""
    seen.clear()
