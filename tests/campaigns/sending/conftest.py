"""The fixtures of campaigns under short names."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def service(campaign_service: Any) -> Any:
    return campaign_service


@pytest.fixture
def database(campaign_database: Any) -> Any:
    return campaign_database


@pytest.fixture
def campaign(new_campaign: Any) -> Any:
    return new_campaign


@pytest.fixture
def working(campaign_working: Any) -> Any:
    return campaign_working


@pytest.fixture
def reaches(campaign_reaches: Any) -> Any:
    return campaign_reaches
