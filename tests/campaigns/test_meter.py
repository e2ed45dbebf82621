"""The rate and the time left that `watch` shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobwire.campaigns import Campaign, CampaignStatus
from jobwire.campaigns.meter import WINDOW, Meter, Speed

START = Campaign(
    id="c", name="spring", description=None, batch_id=None, template_id=None, params={}, mode="TEST",
    delivery_rate=600, retry_limit=3, status=CampaignStatus.RUNNING, progress=0, total_jobs=1000, sent=0, failed=0,
    created_at=None, updated_at=None, started_at=None, completed_at=None, created_by_id=None, paused_until=None,
    paused_reason=None, error=None,
)  # fmt: skip


def seen(meter: Meter, second: float, done: int, **other) -> Speed:
    return meter.see(replace(START, sent=done, **other), second)


def test_the_rate_is_that_of_the_last_seconds():
    meter = Meter()
    for second in range(60):
        seen(meter, second, 5 * second)
    for second in range(60, 60 + round(WINDOW) + 1):
        speed = seen(meter, second, 300 + 20 * (second - 60))
    assert speed.per_minute == pytest.approx(1200)
    assert speed.left == pytest.approx((1000 - 600) / 20)


def test_the_time_before_the_first_message_does_not_count():
    meter = Meter()
    for second in range(30):
        seen(meter, second, 0)
    assert seen(meter, 31, 20).per_minute == pytest.approx(600)


def test_few_messages_leave_the_time_that_the_asked_rate_needs():
    meter = Meter()
    seen(meter, 0, 1, delivery_rate=6, total_jobs=13)
    assert seen(meter, 10, 3, delivery_rate=6, total_jobs=13).left == pytest.approx(100)


def test_a_campaign_that_does_not_get_on_is_stuck_unless_its_rate_explains_it():
    meter = Meter()
    seen(meter, 0, 7)
    assert not seen(meter, WINDOW, 7).stuck
    assert seen(meter, WINDOW + 1, 7) == Speed(0, None, stuck=True)
    slow = Meter()
    seen(slow, 0, 7, delivery_rate=1)
    assert not seen(slow, 170, 7, delivery_rate=1).stuck
    assert seen(slow, 181, 7, delivery_rate=1).stuck


def test_no_worker_at_all_is_noticed_before_the_messages_are_counted():
    meter = Meter()
    seen(meter, 0, 0, total_jobs=0)
    assert seen(meter, WINDOW + 1, 0, total_jobs=0).stuck


def test_a_pause_has_no_rate_and_does_not_count_later():
    meter = Meter()
    seen(meter, 0, 100)
    assert seen(meter, 5, 150, status=CampaignStatus.PAUSED) == Speed(None, None)
    seen(meter, 100, 150)
    assert seen(meter, 102, 170).per_minute == pytest.approx(600)
