"""Priorities expressed in another protocol, schedules as cron: no store needed."""

from __future__ import annotations

from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwire.backends.bullmq.rules import MAX_PRIORITY
from jobwire.errors import InvalidOption
from jobwire.pipeline.datasource.content import content_of
from jobwire.pipeline.move.order import Priorities
from jobwire.pipeline.move.schedules import as_cron
from jobwire.pipeline.stores.dialect import Dialect, all_dialects, dialect_of


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1))
def test_bullmq_runs_low_numbers_first_so_levels_are_turned_round_and_stay_in_their_order(levels: list[int]) -> None:
    priorities = Priorities.between("pgboss", "bullmq", levels)

    numbers = [priorities.number(level, level) for level in sorted(levels, reverse=True)]

    assert numbers == sorted(numbers)
    assert all(0 <= number <= MAX_PRIORITY for number in numbers if number is not None)
    assert len(set(numbers)) == len(set(levels))


def test_priorities_of_bullmq_change_their_sign_for_pgboss() -> None:
    priorities = Priorities.between("bullmq", "pgboss", [0, -3, -2_000_000])

    assert [priorities.number(level, None) for level in (0, -3, -2_000_000)] == [0, -3, -2_000_000]


def test_default_jobs_stay_at_zero_in_bullmq_if_none_was_above_them() -> None:
    priorities = Priorities.between("pgboss", "bullmq", [0, -5])

    assert [priorities.number(level, level) for level in (0, -5)] == [0, 5]


def test_the_plan_says_where_ordinary_jobs_stand_once_others_were_above_them() -> None:
    rule = Priorities.between("pgboss", "bullmq", [0, 5]).described()

    assert "what had none has 5 now" in rule


@pytest.mark.parametrize(("level", "number"), [(3, 7), (0, 5), (-2, 5)])
def test_bridgemq_has_a_front_class_and_another(level: int, number: int) -> None:
    assert Priorities.between("pgboss", "bridgemq", [3, 0, -2]).number(level, level) == number


@pytest.mark.parametrize(
    ("protocol", "priorities"),
    [("bullmq", [0, 1, 7]), ("pgboss", [9, 0, -3]), ("bridgemq", [7, 6]), ("bridgemq", [10, None])],
)
def test_a_job_that_runs_earlier_has_a_higher_level(protocol: str, priorities: list[int | None]) -> None:
    levels = [dialect_of(protocol).level(priority) for priority in priorities]

    assert levels == sorted(set(levels), reverse=True)


@pytest.mark.parametrize("dialect", all_dialects(), ids=lambda dialect: dialect.protocol)
def test_a_job_without_a_priority_has_level_0(dialect: Dialect) -> None:
    assert (dialect.level(None), dialect.level(dialect.rules.capabilities.default_priority)) == (0, 0)


def test_within_a_protocol_numbers_stay_as_they_are() -> None:
    assert Priorities.between("bridgemq", "bridgemq", [1]).number(1, 9) == 9


def test_a_note_gives_the_same_priorities_back() -> None:
    priorities = Priorities.between("pgboss", "bullmq", [2**31 - 1, -(2**31), 7])

    assert Priorities.from_note(orjson.loads(orjson.dumps(priorities.as_note()))) == priorities


@pytest.mark.parametrize(
    ("every", "cron"),
    [(60, "* * * * *"), (900, "*/15 * * * *"), (3600, "0 * * * *"), (21600, "0 */6 * * *"), (86400, "0 0 * * *")],
)
def test_an_interval_that_divides_the_hour_or_the_day_has_a_cron_expression(every: int, cron: str) -> None:
    assert as_cron(every, seconds=False) == cron


@pytest.mark.parametrize("every", [7, 90, 2700, 50_000, 0.5])
def test_an_interval_of_another_rhythm_has_none(every: float) -> None:
    with pytest.raises(InvalidOption, match="has no cron expression"):
        as_cron(every, seconds=True)


def test_the_same_json_in_another_spelling_has_the_same_content() -> None:
    first = content_of({"b": [1, {"y": 2.0, "x": None}], "a": "ë"}, None)

    assert first == content_of({"a": "ë", "b": [1.0, {"x": None, "y": 2}]}, None)
    assert first != content_of({"a": "e", "b": [1, {"x": None, "y": 2}]}, None)
    assert first != content_of({"b": [1, {"y": 2, "x": None}], "a": "ë"}, "name")


def test_levels_that_do_not_fit_are_numbered_in_their_order() -> None:
    levels = [2**31 - 1, 100, 0, -(2**31)]
    priorities = Priorities.between("pgboss", "bullmq", levels)

    assert all(a < b for a, b in pairwise(priorities.number(level, level) or 0 for level in levels))
