"""schedules: list, add, drop, run."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobwire import Feature, Schedule
from jobwire.next_runs import next_runs

Call = Callable[..., Any]


def test_a_schedule_is_added_listed_run_and_dropped(call: Call, on_every: Call, every_url: str) -> None:
    where = ("--url", every_url)
    more = () if every_url.startswith("monque") else ("--attempts", "5", "--priority", "7", "--backoff", "fixed:3s")
    options = ("--cron", "0 3 * * *", "--data", '{"a": 1}', *more, *where)
    made = call("schedules", "add", "reports", "nightly", *options, "--json").json
    assert (made["key"], made["cron"], made["data"]) == ("nightly", "0 3 * * *", {"a": 1})

    [listed] = call("schedules", "list", "--json", *where).lines
    runs = [datetime.fromisoformat(text) for text in listed["next_runs"]]
    assert len(runs) == 5
    assert {(run.hour, run.minute, run.utcoffset()) for run in runs} == {(3, 0, timedelta(0))}
    assert {after - before for before, after in itertools.pairwise(runs)} == {timedelta(days=1)}
    shown = call("schedules", "list", "reports", *where)
    assert shown.out.startswith("nightly  reports  0 3 * * * UTC\n"), shown
    assert shown.out.count("03:00:00 UTC") == 5

    before = on_every(every_url, lambda queue: queue.counts(), "reports")
    added = call("schedules", "run", "reports", "nightly", *where)
    assert added.code == 0, added
    job = on_every(every_url, lambda queue: queue.get(added.out.strip()), "reports")
    assert job.data == {"a": 1}
    assert not more or (job.attempts, job.priority) == (5, 7), "it has the options of the schedule"
    after = on_every(every_url, lambda queue: queue.counts(), "reports")
    assert sum(after.values()) == sum(before.values()) + 1

    wrong = call("schedules", "drop", "reports", "nigthly", *where)
    assert (wrong.code, wrong.err) == (
        4, "jobwire: queue 'reports' has no schedule 'nigthly'; did you mean nightly?\n"
    )  # fmt: skip
    assert call("schedules", "drop", "reports", "nightly", *where).out == "dropped schedule nightly of reports\n"
    assert call("schedules", "list", *where).code == 4


def test_an_interval_and_a_zone_work_or_are_refused_by_the_protocol(call: Call, on_every: Call, every_url: str) -> None:
    async def can(queue: Any) -> list[bool]:
        return [queue.capabilities.has(one) for one in (Feature.SCHEDULE_EVERY, Feature.SCHEDULE_TZ)]

    by_interval, with_zone = on_every(every_url, can, "reports")
    often = call("schedules", "add", "reports", "often", "--every", "15m", "--url", every_url, "--json")
    assert often.code == (0 if by_interval else 1), often
    options = ("--cron", "30 9 * * mon", "--tz", "Europe/Berlin", "--url", every_url, "--json")
    zoned = call("schedules", "add", "reports", "weekly", *options)
    assert zoned.code == (0 if with_zone else 1), zoned
    if with_zone:
        assert {datetime.fromisoformat(text).hour for text in zoned.json["next_runs"]} == {9}


@pytest.mark.parametrize("rule", [(), ("--cron", "0 3 * * *", "--every", "1h")])
def test_one_rule_is_needed(call: Call, jobwire_url: str, rule: tuple[str, ...]) -> None:
    said = call("schedules", "add", "reports", "nightly", *rule, "--url", jobwire_url)
    assert said.code == 2
    assert "give either --cron or --every" in said.err


def test_the_next_runs_follow_the_clock_of_the_zone_and_end_with_the_schedule() -> None:
    noon = datetime(2030, 3, 29, 12, tzinfo=UTC)
    nightly = Schedule("k", "q", "q", cron="30 4 * * *", tz="Europe/Berlin", end_at=noon + timedelta(days=3))
    assert [run.isoformat() for run in next_runs(nightly, now=noon)] == [
        "2030-03-30T04:30:00+01:00",
        "2030-03-31T04:30:00+02:00",
        "2030-04-01T04:30:00+02:00",
    ]
    hourly = Schedule("k", "q", "q", every=3600, next_run=noon, limit=3, runs=2)
    assert next_runs(hourly) == [noon, noon + timedelta(hours=1)]
    assert next_runs(Schedule("k", "q", "q", cron="at dawn", next_run=noon)) == [noon]


@pytest.mark.parametrize("rule", [{"every": 3600}, {"cron": "0 * * * *"}], ids=str)
def test_of_the_runs_that_a_schedule_has_missed_only_the_first_is_a_next_run(rule: dict[str, Any]) -> None:
    due = datetime(2030, 3, 29, 12, tzinfo=UTC)
    late = Schedule("k", "q", "q", next_run=due, **rule)
    hours = [run.hour for run in next_runs(late, now=due + timedelta(hours=5, minutes=1))]
    assert hours == [12, 18, 19, 20, 21]
