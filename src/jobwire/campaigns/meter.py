"""Measures how fast a campaign goes, from what a watcher saw of it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from jobwire.campaigns.models import Campaign
from jobwire.campaigns.states import CampaignStatus

WINDOW = 15.0
"""Seconds over which the rate is measured."""
_ENOUGH = 5
"""Messages in a window from which on the time left is computed from the measured rate, else from the asked one."""


@dataclass(frozen=True, slots=True)
class Speed:
    """The rate in messages per minute and the seconds that are left, each None while it is not known."""

    per_minute: float | None
    left: float | None
    stuck: bool = False
    """True if the campaign runs and no message was settled for longer than its rate explains."""


class Meter:
    """Takes a campaign as it was at a time, and returns its speed: `meter.see(campaign, time.monotonic())`."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._changed = 0.0

    def see(self, campaign: Campaign, now: float) -> Speed:
        """Returns the speed over the last seconds."""
        done = campaign.sent + campaign.failed
        if campaign.status is not CampaignStatus.RUNNING:
            self._seen.clear()
            return Speed(None, None)
        if not self._seen or done != self._seen[-1][1]:
            self._changed = now
        if not done:  # the time before the first message is not a part of the rate
            self._seen.clear()
        self._seen.append((now, done))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()
        began, before = self._seen[0]
        stuck = now - self._changed > max(WINDOW, 3 * 60 / campaign.delivery_rate)
        if now - began < 1.0:
            return Speed(None, None, stuck)
        rate = (done - before) * 60 / (now - began)
        if stuck or not campaign.total_jobs:
            return Speed(rate, None, stuck)
        used = rate if done - before >= _ENOUGH else float(campaign.delivery_rate)
        return Speed(rate, (campaign.total_jobs - done) * 60 / used)
