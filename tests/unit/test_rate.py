"""A rate is checked when it is made, and takes seconds and timedeltas alike."""

from __future__ import annotations

import dataclasses
import doctest
from datetime import timedelta

import pytest

from jobwire import InvalidOption, Rate, rate
from jobwire.rate import rate_of


def test_the_examples_in_the_docstrings_hold():
    results = doctest.testmod(rate)
    assert (results.failed, results.attempted > 0) == (0, True), results


def test_a_rate_is_per_second_unless_given_otherwise():
    assert Rate(10) == Rate(10, per=1) == Rate(10, timedelta(seconds=1))
    assert (Rate(10, per=timedelta(minutes=1)).per, Rate(10, 60) == Rate(10, timedelta(minutes=1))) == (60.0, True)


@pytest.mark.parametrize(
    ("jobs", "per", "field"),
    [
        (0, 1, "rate.jobs"),
        (1.5, 1, "rate.jobs"),
        (True, 1, "rate.jobs"),
        ("10", 1, "rate.jobs"),
        (10, 0, "rate.per"),
        (10, timedelta(0), "rate.per"),
        (10, "minute", "rate.per"),
        (10, float("inf"), "rate.per"),
    ],
)
def test_a_rate_that_makes_no_sense_is_refused_when_it_is_made(jobs, per, field):
    with pytest.raises(InvalidOption) as refusal:
        Rate(jobs, per)
    assert refusal.value.field == field


def test_a_rate_can_be_hashed_and_not_changed():
    assert len({Rate(10), Rate(10, 1.0), Rate(10, 2)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Rate(10).jobs = 3  # pyright: ignore[reportAttributeAccessIssue] that is the test
    assert dataclasses.replace(Rate(10, per=5), jobs=3) == Rate(3, per=5)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((10, 60), "Rate(10, per=60)"),
        ([10, 0.5], "Rate(10, per=0.5)"),
        (10, "Rate(10)"),
        ((10,), "Rate(10, per=60)"),
        (True, "Rate(10, per=60)"),
        ("10/s", "Rate(10, per=60)"),
    ],
)
def test_what_is_no_rate_is_refused_with_the_rate_that_is_meant(given, shown):
    with pytest.raises(InvalidOption) as refusal:
        rate_of("rate", given)
    assert (refusal.value.field, shown in refusal.value.rule) == ("rate", True), refusal.value
