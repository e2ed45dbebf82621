"""Priorities told in another protocol's words, schedules as cron, options read from native fields: no store needed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwire import Backoff
from jobwire.errors import InvalidOption
from jobwire.options import Keep
from jobwire.pipeline.move.carried import options_of
from jobwire.pipeline.move.order import LOWEST_BULLMQ, Priorities
from jobwire.pipeline.move.schedules import as_cron
from jobwire.pipeline.move.survey import content_of


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1))
def test_bullmq_runs_low_numbers_first_so_levels_are_turned_round_and_stay_in_their_order(levels: list[int]) -> None:
    priorities = Priorities.between("pgboss", "bullmq", levels)

    numbers = [priorities.number(level, level) for level in sorted(levels, reverse=True)]

    assert numbers == sorted(numbers)
    assert all(0 <= number <= LOWEST_BULLMQ for number in numbers if number is not None)
    assert len(set(numbers)) == len(set(levels))


def test_priorities_of_bullmq_change_their_sign_for_pgboss() -> None:
    priorities = Priorities.between("bullmq", "pgboss", [0, -3, -2_000_000])

    assert [priorities.number(level, None) for level in (0, -3, -2_000_000)] == [0, -3, -2_000_000]


def test_default_jobs_stay_at_zero_in_bullmq_if_none_was_above_them() -> None:
    priorities = Priorities.between("pgboss", "bullmq", [0, -5])

    assert [priorities.number(level, level) for level in (0, -5)] == [0, 5]


def test_the_plan_says_where_ordinary_jobs_stand_once_others_were_above_them() -> None:
    told = Priorities.between("pgboss", "bullmq", [0, 5]).told()

    assert "what had none has 5 now" in told


@pytest.mark.parametrize(("level", "number", "front"), [(3, 7, True), (0, 5, False), (-2, 5, False)])
def test_bridgemq_has_a_front_class_and_another(level: int, number: int, front: bool) -> None:
    priorities = Priorities.between("pgboss", "bridgemq", [3, 0, -2])

    assert priorities.number(level, level) == number
    assert priorities.front(level, level) is front


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


@pytest.mark.parametrize(
    ("protocol", "raw", "options"),
    [
        (
            "bullmq",
            {"opts": '{"backoff":{"type":"exponential","delay":2000,"jitter":0.5},"removeOnComplete":true}'},
            {"backoff": Backoff.exponential(2.0, jitter=0.5), "keep_completed": False},
        ),
        ("bullmq", {"opts": '{"backoff":500,"removeOnFail":{"count":5,"age":60}}'},
         {"backoff": Backoff.fixed(0.5), "keep_failed": Keep(5, 60.0)}),
        ("bullmq", {"opts": '{"backoff":{"type":"mine"}}'}, {"backoff": Backoff.custom("mine")}),
        ("bullmq", {"opts": "not json"}, {}),
        ("pgboss", {"retry_delay": 3, "retry_backoff": False, "expire_seconds": 60},
         {"backoff": Backoff.fixed(3.0), "timeout": 60.0}),
        ("pgboss", {"retry_delay": 0, "retry_backoff": False, "expire_seconds": 900}, {}),
        ("pgboss", {"retry_delay": 2, "retry_backoff": True, "retry_delay_max": 30},
         {"backoff": Backoff.exponential(2.0, cap=30.0)}),
        (
            "bridgemq",
            {"retry": {"attempts": 2, "backoff": {"type": "linear", "delay": 1500, "maxDelay": 9000, "jitter": True}},
             "x": {"timeoutMs": 2500}},
            {"backoff": Backoff.linear(1.5, jitter=0.25, cap=9.0), "timeout": 2.5},
        ),
        ("monque", {"anything": 1}, {}),
    ],
)  # fmt: skip
def test_options_are_read_from_the_native_fields(protocol: str, raw: dict[str, Any], options: dict[str, Any]) -> None:
    assert options_of(protocol, raw) == options


def test_the_same_json_in_another_spelling_has_the_same_content() -> None:
    first = content_of({"b": [1, {"y": 2.0, "x": None}], "a": "ë"}, None)

    assert first == content_of({"a": "ë", "b": [1.0, {"x": None, "y": 2}]}, None)
    assert first != content_of({"a": "e", "b": [1, {"x": None, "y": 2}]}, None)
    assert first != content_of({"b": [1, {"y": 2, "x": None}], "a": "ë"}, "name")


def test_levels_that_do_not_fit_are_numbered_in_their_order() -> None:
    levels = [2**31 - 1, 100, 0, -(2**31)]
    priorities = Priorities.between("pgboss", "bullmq", levels)

    assert all(a < b for a, b in pairwise(priorities.number(level, level) or 0 for level in levels))
