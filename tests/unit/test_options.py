"""Options refuse bad input with its field, value and rule, and the model's values behave as values."""

from __future__ import annotations

import copy
import dataclasses
import doctest
import math
import pickle
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwire import Worker, options
from jobwire.backoff import Backoff
from jobwire.checks import LARGEST, aware, seconds, text, whole
from jobwire.errors import InvalidOption
from jobwire.model import Event, EventKind, Job, Page, Schedule, State
from jobwire.options import LARGE_KEEP, Keep, NewJob, NewSchedule, Parent, Target, Unique, keep_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
durations = st.floats(min_value=0, max_value=1e9, allow_nan=False)


def test_the_examples_in_the_docstrings_hold():
    results = doctest.testmod(options)
    assert (results.failed, results.attempted > 0) == (0, True), results


def refused(field, make, **options):
    with pytest.raises(InvalidOption) as refusal:
        make(**options)
    assert refusal.value.field == field, str(refusal.value)
    assert field in str(refusal.value)
    assert refusal.value.rule in str(refusal.value)


@given(durations)
def test_seconds_keeps_a_number_as_it_is(value):
    assert seconds("delay", value) == value


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36500)))
def test_seconds_reads_a_timedelta(value):
    assert seconds("delay", value) == value.total_seconds()


@given(st.one_of(st.floats(max_value=0, exclude_max=True), st.just(math.nan), st.just(math.inf)))
def test_seconds_refuses_what_is_no_duration(value):
    with pytest.raises(InvalidOption, match="at least 0 s"):
        seconds("delay", value)


@pytest.mark.parametrize("value", [True, "5", None, [1], 1j])
def test_seconds_refuses_what_is_no_number(value):
    with pytest.raises(InvalidOption, match="number of seconds or a timedelta"):
        seconds("delay", value)


def test_seconds_includes_its_minimum():
    assert seconds("timeout", 0.001, minimum=0.001) == 0.001
    with pytest.raises(InvalidOption):
        seconds("timeout", 0.0009, minimum=0.001)


@given(st.integers(min_value=3, max_value=LARGEST))
def test_whole_accepts_integers_from_its_minimum_on(value):
    assert whole("attempts", value, minimum=3) == value


@given(st.integers(min_value=LARGEST + 1))
def test_whole_refuses_what_a_store_can_not_hold(value):
    with pytest.raises(InvalidOption, match=f"attempts: must be at most {LARGEST}"):
        whole("attempts", value, minimum=3)


@given(st.integers(max_value=2))
def test_whole_names_its_minimum_to_what_is_below(value):
    with pytest.raises(InvalidOption, match=r"attempts: must be at least 3 \(got"):
        whole("attempts", value, minimum=3)


@given(st.one_of(st.booleans(), st.floats(), st.text(), st.none()))
def test_whole_asks_what_is_no_integer_for_one_and_names_no_minimum(value):
    with pytest.raises(InvalidOption, match=r"priority: must be an integer \(got"):
        whole("priority", value, minimum=-(2**31))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_text_accepts_any_unicode(value):
    assert text("name", value) == value


@pytest.mark.parametrize("value", ["", None, 1, b"bytes", "lone \ud800"])
def test_text_refuses_what_a_store_can_not_hold(value):
    with pytest.raises(InvalidOption):
        text("name", value)


def test_aware_refuses_a_time_without_a_zone():
    assert aware("run_at", NOW) is NOW
    for value in (NOW.replace(tzinfo=None), "2026-03-01", 0, NOW.date()):
        with pytest.raises(InvalidOption):
            aware("run_at", value)


def test_aware_refuses_a_time_to_which_nothing_can_be_added():
    assert aware("run_at", NOW.replace(year=9899))
    refused("run_at", NewJob, data=None, run_at=datetime.max.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("name", {"name": ""}),
        ("name", {"name": 5}),
        ("id", {"id": ""}),
        ("id", {"id": 17}),
        ("priority", {"priority": 1.5}),
        ("priority", {"priority": True}),
        ("priority", {"priority": -(2**31) - 1}),
        ("delay", {"delay": -1}),
        ("delay", {"delay": "soon"}),
        ("delay", {"delay": timedelta(seconds=-1)}),
        ("run_at", {"run_at": NOW.replace(tzinfo=None)}),
        ("run_at", {"delay": 1, "run_at": NOW}),
        ("attempts", {"attempts": 0}),
        ("attempts", {"attempts": True}),
        ("backoff", {"backoff": 5}),
        ("timeout", {"timeout": 0}),
        ("keep_completed", {"keep_completed": -1}),
        ("keep_failed", {"keep_failed": "all"}),
        ("expires", {"expires": 0}),
        ("unique", {"unique": "k"}),
        ("parent", {"parent": "x"}),
        ("target", {"target": "x"}),
        ("lifo", {"lifo": "yes"}),
        ("extra", {"extra": "x"}),
    ],
    ids=str,
)
def test_a_job_refuses_a_bad_option(field, options):
    refused(field, NewJob, data=None, **options)


def test_a_job_accepts_every_good_option_at_once():
    job = NewJob(
        {"a": 1},
        name="welcome",
        id="order-17",
        priority=0,
        delay=timedelta(minutes=1),
        attempts=3,
        backoff=Backoff.exponential(1.0),
        timeout=30,
        keep_completed=Keep(count=10, age=3600),
        keep_failed=Keep.ALL,
        unique=Unique("k", ttl=5, extend=True),
        lifo=True,
        parent=Parent("1", "reports", "ignore"),
        target=Target(stack=("gpu",), region=["eu", "us"], mode="all"),
        expires=60,
    )
    assert job.delay_at(0.0) == 60
    assert job.target.region == ("eu", "us")


def test_another_job_is_made_of_one_and_checked_anew():
    job = NewJob(1, attempts=3)
    assert dataclasses.replace(job, attempts=5) == NewJob(1, attempts=5)
    with pytest.raises(InvalidOption, match="attempts"):
        dataclasses.replace(job, attempts=0)


OPTIONS = {
    "id": "a",
    "priority": 0,
    "delay": 0,
    "run_at": NOW,
    "attempts": 1,
    "backoff": Backoff.fixed(1.0),
    "timeout": 1,
    "keep_completed": Keep.NONE,
    "keep_failed": 0,
    "unique": Unique("a"),
    "lifo": True,
    "parent": Parent("1", "letters"),
    "target": Target(),
    "expires": 1,
    "extra": {"timestamp": 1},
}


def test_no_option_is_forgotten_in_what_makes_a_job_plain():
    assert {"data", "name", *OPTIONS} == {field.name for field in dataclasses.fields(NewJob)}
    assert NewJob(1, "name").plain
    assert [option for option, given in OPTIONS.items() if NewJob(1, "name", **{option: given}).plain] == []


@given(durations, durations)
def test_a_delay_is_the_same_whenever_it_is_asked_for(delay, now):
    assert NewJob(None, delay=delay).delay_at(now) == delay


@given(st.integers(min_value=-10_000, max_value=10_000))
def test_a_time_to_run_at_is_a_delay_from_now_and_never_negative(offset):
    job = NewJob(None, run_at=NOW + timedelta(seconds=offset))
    assert job.delay_at(NOW.timestamp()) == max(0, offset)


def test_a_job_without_delay_runs_at_once():
    assert NewJob(None).delay_at(1e9) == 0.0


@pytest.mark.parametrize("value", [0, 5, Keep.ALL, Keep.NONE, Keep(count=3), Keep(age=1.5)])
def test_keep_has_one_form_for_every_spelling(value):
    kept = keep_of(value)
    assert isinstance(kept, Keep)
    assert keep_of(kept) is kept


def test_keep_has_names_for_all_and_none():
    assert (Keep.ALL, Keep.NONE, keep_of(0)) == (Keep(), Keep(count=0), Keep.NONE)
    assert Keep.ALL.ALL is Keep.ALL


@pytest.mark.parametrize(("given", "meant"), [(True, "Keep.ALL"), (False, "Keep.NONE")])
def test_a_boolean_is_refused_with_the_keep_that_is_meant(given, meant):
    for field in ("keep_completed", "keep_failed"):
        for make in (
            lambda **options: NewJob(1, **options),
            lambda **options: Worker("q", print, "memory:", **options),
        ):
            with pytest.raises(InvalidOption, match=meant) as refusal:
                make(**{field: given})
            assert refusal.value.field == field


def test_keep_refuses_negative_counts_and_ages():
    refused("keep.count", Keep, count=-1)
    refused("keep.age", Keep, age=-1)


def test_keeping_very_many_jobs_is_warned_about():
    with pytest.warns(UserWarning, match="slows every finish down"):
        Keep(count=LARGE_KEEP + 1)
    with pytest.warns(UserWarning, match="keep_completed"):
        NewJob(None, keep_completed=LARGE_KEEP + 1)
    with pytest.warns(UserWarning, match="keep_failed") as warned:
        keep_of(LARGE_KEEP + 1, "keep_failed")
    assert len(warned) == 1
    Keep(count=LARGE_KEEP)


def test_a_unique_key_refuses_bad_options():
    refused("unique.key", Unique, key="")
    refused("unique.ttl", Unique, key="k", ttl=0)
    refused("unique.extend", Unique, key="k", extend=True)


def test_a_parent_refuses_bad_options():
    refused("parent.id", Parent, id="", queue="q")
    refused("parent.queue", Parent, id="1", queue="")
    refused("parent.on_failure", Parent, id="1", queue="q", on_failure="shrug")


def test_a_target_refuses_bad_options():
    refused("target.stack", Target, stack="gpu")
    refused("target.region", Target, region=("",))
    refused("target.server", Target, server="")
    refused("target.mode", Target, mode="some")


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("key", {"key": "", "every": 1}),
        ("every", {}),
        ("every", {"every": 1, "cron": "* * * * *"}),
        ("every", {"every": 0}),
        ("cron", {"cron": ""}),
        ("tz", {"cron": "* * * * *", "tz": ""}),
        ("limit", {"every": 1, "limit": 0}),
        ("start_at", {"every": 1, "start_at": NOW.replace(tzinfo=None)}),
        ("end_at", {"every": 1, "end_at": "tomorrow"}),
        ("immediately", {"every": 1, "start_at": NOW, "immediately": True}),
        ("immediately", {"every": 1, "immediately": "no"}),
    ],
    ids=str,
)
def test_a_schedule_refuses_a_bad_option(field, options):
    refused(field, NewSchedule, **{"key": "daily", "job": NewJob(None), **options})


def test_a_refusal_shows_a_long_value_cut_short_and_survives_pickling():
    with pytest.raises(InvalidOption) as refusal:
        NewJob(None, backoff="x" * 500)
    message = str(refusal.value)
    assert len(message) < 250
    again = pickle.loads(pickle.dumps(refusal.value))
    assert (str(again), again.field, again.rule) == (message, "backoff", refusal.value.rule)


@pytest.mark.parametrize("state", State)
def test_exactly_three_states_are_final(state):
    assert state.finished == (state in {State.COMPLETED, State.FAILED, State.CANCELLED})


def test_a_state_is_its_own_word():
    assert State("waiting_children") is State.WAITING_CHILDREN
    assert f"{State.DELAYED}" == "delayed"


def test_a_job_is_a_value_that_hides_its_raw_form():
    job = Job("1", "letters", "letters", {"a": 1}, raw={"secret": "stored"})
    assert copy.copy(job) == job
    assert "stored" not in repr(job)


async def test_a_job_that_came_through_no_queue_can_not_be_waited_for():
    with pytest.raises(RuntimeError, match="not read through a queue"):
        await Job("1", "letters", "letters", None).wait()


def test_a_page_is_a_list_that_knows_how_to_go_on():
    job = Job("1", "letters", "letters", None)
    page = Page([job], cursor="next")
    assert (page, page.cursor, len(page)) == ([job], "next", 1)
    assert Page().cursor is None


def test_events_and_schedules_have_data_of_their_own():
    first, second = (Event(number, EventKind.ADDED, "added") for number in ("1", "2"))
    assert first.data is not second.data
    assert Schedule("k", "q", "n").raw is not Schedule("k", "q", "n").raw
