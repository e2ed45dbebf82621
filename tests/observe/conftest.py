"""A store in this process, metrics with a registry of their own, and an endpoint to scrape."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from jobwire.observe.metrics import Metrics


@pytest.fixture
def url(unique: str) -> str:
    return f"memory:{unique}"


@pytest.fixture
def queue_name() -> str:
    return "emails"


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    with Metrics(CollectorRegistry(), fresh_for=0) as made:
        yield made


@pytest.fixture
def port(metrics: Metrics) -> int:
    return metrics.serve(0)
