"""What follows a failed run: the next attempt and its wait, or the end. The one rule behind several protocols."""

from __future__ import annotations

import asyncio
import doctest
import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwire import retry
from jobwire.backoff import Backoff, Curve
from jobwire.boundary import Claim, Failed
from jobwire.model import Job
from jobwire.retry import Custom, NextAttempt, next_attempt

HOUR = 3600.0
durations = st.floats(0, 1e6)


def failed(**about: Any) -> Failed:
    return Failed(Claim(Job("1", "mail", "mail", None), "token"), "boom", **about)


def after(failures: int, backoff: Any, *, attempts: int = 10**9, longest: float = HOUR, **about: Any) -> NextAttempt:
    return next_attempt(
        failed(**about), failures=failures, attempts=attempts, backoff=backoff, longest=longest, rng=lambda: 0.5
    )


def answering(answer: Any) -> Custom:
    return Custom("mine", lambda failures, job, error: answer)


class Exiting:
    def __repr__(self) -> str:
        raise SystemExit("repr")


class Incomparable(float):
    def __lt__(self, other: Any) -> bool:
        raise RuntimeError("can't be compared")

    __gt__ = __lt__


class Timeless(timedelta):
    def total_seconds(self) -> float:
        raise RuntimeError("no seconds")


class NoClass:
    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no class")


@pytest.mark.parametrize(("answer", "shown"), [(Exiting(), "<Exiting"), (NoClass(), "<")], ids=["repr", "class"])
def test_an_answer_of_a_strategy_that_can_not_be_read_ends_the_job(answer: Any, shown: str) -> None:
    decided = after(1, answering(answer))
    assert decided.delay is None
    assert f"(not retried: the backoff strategy returned {shown}" in decided.reason


def test_an_exception_of_a_strategy_that_can_not_be_shown_ends_the_job() -> None:
    class Worse(Exception):
        def __repr__(self) -> str:
            raise KeyboardInterrupt

    def strategy(failures: int, job: Any, error: str) -> float:
        raise Worse

    assert "the backoff strategy raised <Worse" in after(1, Custom("mine", strategy)).reason


@pytest.mark.parametrize("answer", [Incomparable(5), Timeless(seconds=5)], ids=["float", "timedelta"])
def test_a_number_or_timedelta_of_the_users_own_class_is_read_as_what_it_is(answer: Any) -> None:
    assert after(1, answering(answer)) == NextAttempt(5.0, "boom")


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(retry).failed == 0


@given(st.integers(1, 100), st.integers(0, 100))
def test_a_job_runs_again_exactly_while_it_has_attempts_left(failures: int, attempts: int) -> None:
    assert (after(failures, None, attempts=attempts).delay is None) == (failures >= attempts)


def test_a_final_failure_ends_the_job_whatever_attempts_are_left() -> None:
    assert after(1, None, final=True) == NextAttempt(None, "boom")


def test_the_wait_that_a_failure_asks_for_goes_before_the_backoff() -> None:
    assert after(1, Curve("fixed", 9.0), delay=2.5).delay == 2.5


@given(durations, st.integers(1, 40))
def test_each_kind_of_curve_has_its_own_formula(delay: float, failures: int) -> None:
    waits = {kind: Curve(kind, delay).after(failures) for kind in ("fixed", "linear", "exponential")}
    assert waits["fixed"] == delay
    assert waits["linear"] == pytest.approx(delay * failures)
    assert waits["exponential"] == pytest.approx(min(delay * 2 ** (failures - 1), Curve("fixed", 0).cap))


@given(st.floats(0, 1e300), st.integers(1, 10**30), st.floats(0, 1), st.floats(0, 1, exclude_max=True))
def test_no_curve_waits_longer_than_its_cap(delay: float, failures: int, spread: float, chance: float) -> None:
    for kind in ("fixed", "linear", "exponential"):
        curve = Curve(kind, delay, cap=60.0, least=1 - spread, most=1 + spread)
        assert 0 <= curve.after(min(failures, 2**62), rng=lambda: chance) <= 60.0


def test_a_delay_of_hundreds_of_digits_counts_as_infinite() -> None:
    assert Curve("fixed", 10**400, cap=60.0).after(1) == 60.0


@pytest.mark.parametrize("kind", ["linear", "exponential"])
def test_the_workers_longest_wait_limits_every_backoff(kind: str) -> None:
    assert after(50, Curve(kind, 1000.0)).delay == HOUR
    assert after(50, Backoff(kind, 1000.0)).delay == HOUR
    assert after(1, answering(10**9)).delay == HOUR


def test_a_backoffs_own_cap_holds() -> None:
    assert after(50, Backoff.exponential(1, cap=7)).delay == 7.0


@pytest.mark.parametrize(
    ("answer", "delay"),
    [(1.5, 1.5), (0, 0.0), (timedelta(minutes=2), 120.0), (math.inf, HOUR), (10**400, HOUR), (None, None), (-1, None)],
    ids=["float", "zero", "timedelta", "infinity", "huge", "none", "negative"],
)
def test_a_strategy_answers_with_a_duration_or_ends_the_job(answer: Any, delay: float | None) -> None:
    assert after(1, answering(answer)) == NextAttempt(delay, "boom")


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("5", "'5'"),
        (math.nan, "nan"),
        (True, "True"),
        ([], "[]"),
        (Unprintable(), "<Unprintable, whose repr() raises>"),
    ],
)
def test_any_other_answer_ends_the_job_and_its_reason_names_the_answer(answer: Any, shown: str) -> None:
    reason = f"boom (not retried: the backoff strategy returned {shown}, not seconds, a timedelta or None)"
    assert after(1, answering(answer)) == NextAttempt(None, reason)


def test_a_strategy_that_is_a_coroutine_function_ends_the_job_without_a_warning() -> None:
    async def strategy(failures: int, job: Job, error: str) -> float:
        return 1.0

    found = after(1, Custom("mine", strategy))  # type: ignore[arg-type]
    assert found.delay is None
    assert "returned <coroutine object" in found.reason


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("oh"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_a_strategy_that_raises_ends_the_job_with_both_reasons(error: BaseException) -> None:
    def broken(failures: int, job: Job, message: str) -> float | None:
        raise error

    assert after(1, Custom("mine", broken)) == NextAttempt(
        None, f"boom (not retried: the backoff strategy raised {error!r})"
    )


def test_a_strategy_that_the_worker_does_not_have_ends_the_job() -> None:
    assert after(1, Custom("mine", None)).reason == "boom (not retried: the worker has no backoff strategy for 'mine')"


def test_a_strategy_gets_the_failures_the_job_and_the_error() -> None:
    seen: list[tuple[int, str, str]] = []

    def strategy(failures: int, job: Job, error: str) -> float:
        seen.append((failures, job.id, error))
        return 0.0

    after(3, Custom("mine", strategy))
    assert seen == [(3, "1", "boom")]
