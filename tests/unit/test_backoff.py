"""Waiting between runs: the three formulas, jitter, the cap, and what is refused."""

from __future__ import annotations

import doctest
import math
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwire import backoff
from jobwire.backoff import LONGEST, Backoff, reconnect_delay
from jobwire.errors import InvalidOption

MAKERS = [Backoff.fixed, Backoff.exponential, Backoff.linear]
delays = st.floats(0, 1e300)
chances = st.floats(0, 1, exclude_max=True)


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(backoff).failed == 0
    assert doctest.testmod(backoff).attempted > 0


@pytest.mark.parametrize(
    ("rule", "waits"),
    [
        (Backoff.fixed(2), [2, 2, 2, 2]),
        (Backoff.exponential(0.5), [0.5, 1, 2, 4]),
        (Backoff.linear(3), [3, 6, 9, 12]),
        (Backoff.exponential(1, cap=3), [1, 2, 3, 3]),
        (Backoff.linear(timedelta(seconds=2), cap=timedelta(seconds=5)), [2, 4, 5, 5]),
        (Backoff.exponential(0), [0, 0, 0, 0]),
    ],
)
def test_each_kind_waits_by_its_formula(rule: Backoff, waits: list[float]) -> None:
    assert [rule.after(failures) for failures in (1, 2, 3, 4)] == waits


FORMULAS: dict[str, Callable[[float, int], float]] = {
    "fixed": lambda delay, failures: delay,
    "linear": lambda delay, failures: delay * failures,
    "exponential": lambda delay, failures: delay * 2 ** (failures - 1),
}


@given(st.floats(1e-3, 1e6), st.integers(3, 40), st.floats(0, 1), chances)
def test_no_kind_is_taken_for_another_from_the_third_failure_on(
    delay: float, failures: int, jitter: float, chance: float
) -> None:
    """The first two waits of linear and exponential are the same: they can't tell the kinds apart."""
    for kind, formula in FORMULAS.items():
        plain, capped = Backoff(kind, delay), Backoff(kind, delay, cap=1.5 * delay)
        whole = min(formula(delay, failures), LONGEST)
        assert plain.after(failures) == pytest.approx(whole), kind
        assert capped.after(failures) == pytest.approx(min(whole, 1.5 * delay)), kind
        spread = Backoff(kind, delay, jitter).after(failures, rng=lambda: chance)
        assert spread == pytest.approx(whole * (1 - jitter * (1 - chance))), kind


@given(delays, st.floats(0, 1), chances, st.integers(1, 60))
def test_jitter_spreads_the_wait_over_its_last_part(delay: float, jitter: float, chance: float, failures: int) -> None:
    for make in MAKERS:
        whole = make(delay).after(failures)
        wait = make(delay, jitter=jitter).after(failures, rng=lambda: chance)
        assert whole * (1 - jitter) * 0.999999 <= wait <= whole * 1.000001
        assert wait == pytest.approx(chance * whole * jitter + whole * (1 - jitter))


def test_jitter_draws_a_new_number_each_time() -> None:
    rule = Backoff.fixed(100, jitter=1)
    assert len({rule.after(1) for _ in range(50)}) > 1


@given(delays, st.floats(0, 1), st.floats(1e-9, 1e9), chances, st.integers(1, 10**400))
def test_no_number_of_failures_overflows_or_passes_the_cap(
    delay: float, jitter: float, cap: float, chance: float, failures: int
) -> None:
    for make in MAKERS:
        assert 0 <= make(delay, jitter).after(failures, rng=lambda: chance) <= LONGEST
        assert 0 <= make(delay, jitter, cap).after(failures, rng=lambda: chance) <= cap


@given(delays, st.integers(1, 5000))
def test_a_later_failure_never_waits_less(delay: float, failures: int) -> None:
    for make in MAKERS:
        assert make(delay).after(failures + 1) >= make(delay).after(failures)


def test_the_ten_thousandth_failure_has_a_wait_that_a_calendar_can_hold() -> None:
    assert Backoff.exponential(1.0).after(10_000) == LONGEST
    assert timedelta(seconds=LONGEST) > timedelta(days=36_000)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Backoff.fixed(-1), "backoff.delay"),
        (lambda: Backoff.fixed(timedelta(seconds=-1)), "backoff.delay"),
        (lambda: Backoff.linear(math.nan), "backoff.delay"),
        (lambda: Backoff.linear(math.inf), "backoff.delay"),
        (lambda: Backoff.linear(10**400), "backoff.delay"),
        (lambda: Backoff.fixed("5"), "backoff.delay"),  # type: ignore[arg-type]
        (lambda: Backoff.fixed(True), "backoff.delay"),
        (lambda: Backoff.fixed(1, jitter=1.01), "backoff.jitter"),
        (lambda: Backoff.fixed(1, jitter=-0.01), "backoff.jitter"),
        (lambda: Backoff.fixed(1, jitter=math.nan), "backoff.jitter"),
        (lambda: Backoff.fixed(1, cap=0), "backoff.cap"),
        (lambda: Backoff.fixed(1, cap=-1), "backoff.cap"),
        (lambda: Backoff.fixed(1, cap=math.nan), "backoff.cap"),
        (lambda: Backoff("quadratic", 1), "backoff.kind"),
        (lambda: Backoff("fixed", 1, name="mine"), "backoff.name"),
        (lambda: Backoff.custom(""), "backoff.name"),
        (lambda: Backoff.custom("exponential"), "backoff.name"),
        (lambda: Backoff("custom", jitter=0.5, name="mine"), "backoff"),
        (lambda: Backoff("custom", cap=5, name="mine"), "backoff"),
        (lambda: Backoff.fixed(1).after(0), "failures"),
        (lambda: Backoff.custom("mine").after(1), "backoff"),
    ],
)
def test_bad_input_is_refused_with_its_field(make: Callable[[], Any], field: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        make()
    assert caught.value.field == field


def test_a_custom_strategy_is_a_name_that_the_worker_knows() -> None:
    rule = Backoff.custom("business hours", delay=timedelta(seconds=3))
    assert (rule.kind, rule.name, rule.delay) == ("custom", "business hours", 3.0)


def test_durations_are_kept_as_float_seconds_and_equal_rules_are_equal() -> None:
    rule = Backoff("fixed", timedelta(minutes=2), cap=timedelta(minutes=3))  # type: ignore[arg-type]
    assert rule == Backoff.fixed(120, cap=180)
    assert hash(rule) == hash(Backoff.fixed(120, cap=180))
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert (type(rule.delay), type(rule.cap)) == (float, float)


@given(st.integers(0, 10**400), chances)
def test_reconnecting_waits_longer_each_time_and_thirty_seconds_at_most(attempt: int, chance: float) -> None:
    wait = reconnect_delay(attempt, rng=lambda: chance)
    middle = min(0.1 * 2 ** min(attempt, 20), 1e6)
    assert min(middle * 0.8, 30) <= wait <= min(middle * 1.2, 30)
