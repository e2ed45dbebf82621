"""When a keeper restarts a server that crashed: at once, later and later, and not for ever."""

from __future__ import annotations

from jobwire.embedded.keeper import Crashes


def test_crashes_in_quick_succession_are_followed_by_longer_pauses_and_the_sixth_is_the_last() -> None:
    crashes = Crashes()
    assert [crashes.pause(float(now)) for now in range(6)] == [0.05, 0.2, 0.8, 3.2, 12.8, None]


def test_a_server_that_crashes_now_and_then_is_restarted_at_once_each_time() -> None:
    crashes = Crashes()
    assert [crashes.pause(100.0 * day) for day in range(20)] == [0.05] * 20


def test_a_crash_of_long_ago_is_still_one_after_the_first_start() -> None:
    crashes = Crashes()
    assert not crashes.any
    crashes.pause(0.0)
    crashes.pause(1000.0)
    assert crashes.any
