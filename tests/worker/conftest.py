"""Fixtures of the engine's own tests. They run on the in-process store; what differs by protocol has its own."""

from __future__ import annotations

import pytest


@pytest.fixture
def url(unique: str) -> str:
    return f"memory:{unique}"


@pytest.fixture
def queue_name() -> str:
    return "work"
