"""Error budgets, forecasts and changes, from hours whose figures are known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwire.errors import InvalidOption
from jobwire.pipeline.lake.sketches import GROWTH
from jobwire.pipeline.targets.backlog import Backlog, backlogs
from jobwire.pipeline.targets.budget import Budget, budgets
from jobwire.pipeline.targets.change import changes
from jobwire.pipeline.targets.forecast import forecast, slots_for
from jobwire.pipeline.targets.from_lake import observed_until, picture
from jobwire.pipeline.targets.hours import Hour, Hours, QueueKey, hours_of, percentile
from jobwire.pipeline.targets.metrics import metrics_text, write_metrics
from jobwire.pipeline.targets.target import Target, parse_targets

END = datetime(2026, 5, 25, tzinfo=UTC)
HOUR = timedelta(hours=1)
KEY = QueueKey("bullmq+redis://cache/0", "mail")


def sketch(durations_ms: Sequence[float]) -> str:
    """Returns durations as gold keeps them."""
    return made_sketch(tuple(durations_ms))


@cache
def made_sketch(durations_ms: tuple[float, ...]) -> str:
    buckets = [-1 if ms < 1 else math.ceil(math.log(ms) / math.log(GROWTH)) for ms in durations_ms]
    return json.dumps({str(one): buckets.count(one) for one in sorted(set(buckets))})


def week(
    hours: int = 24 * 14,
    *,
    added: Callable[[int], float] = lambda _: 100,
    completed: Callable[[int], float] = lambda _: 100,
    failed: Callable[[int], float] = lambda _: 0,
    waits: Callable[[int], Sequence[float]] = lambda _: [100] * 20,
    runs: Callable[[int], Sequence[float]] = lambda _: [500] * 20,
) -> Hours:
    """Returns the hours up to END; the functions get the number of an hour, from 0 for the last one backwards."""
    throughput, latency = [], []
    for number in range(hours):
        own = {"store": KEY.store, "queue": KEY.queue, "hour": pd.Timestamp(END - HOUR * (number + 1))}
        counts = {"added": added(number), "completed": completed(number), "failed": failed(number)}
        throughput.append({**own, **counts, "started": counts["completed"] + counts["failed"]})
        latency.append({**own, "wait_sketch": sketch(waits(number)), "run_sketch": sketch(runs(number))})
    [found] = hours_of(pd.DataFrame(throughput), pd.DataFrame(latency))
    return found


def budget(hours: Hours, backlog: Backlog | None = None, **target: Any) -> Budget:
    [found] = budgets([hours], {} if backlog is None else {KEY: backlog}, parse_targets({"mail": target}), END)
    return found


def test_a_queue_within_its_target_has_budget_left_and_no_alert() -> None:
    found = budget(week(completed=lambda _: 995, failed=lambda _: 5), failure_rate="1%")
    assert found.cases.all == 14 * 24 * 1000
    assert found.left == pytest.approx(0.5)
    assert found.burn == pytest.approx({"1h": 0.5, "6h": 0.5, "3d": 0.5})
    assert (found.alert, found.met) == (None, True)
    assert found.observed == timedelta(days=14)


@pytest.mark.parametrize(
    ("failing", "share", "alert"),
    [(1, 0.2, "fast"), (6, 0.08, "fast"), (72, 0.012, "slow"), (72, 0.005, None), (0, 0.0, None)],
)
def test_the_faster_a_budget_is_spent_the_sooner_it_alerts(failing: int, share: float, alert: str | None) -> None:
    hours = week(
        completed=lambda number: 1000 * (1 - share) if number < failing else 1000,
        failed=lambda number: 1000 * share if number < failing else 0,
    )
    assert budget(hours, failure_rate=0.01).alert == alert


def test_a_failure_that_is_over_and_a_single_failed_job_alert_nobody() -> None:
    over = week(completed=lambda _: 1000, failed=lambda number: 500 if 7 <= number < 9 else 0)
    assert budget(over, failure_rate=0.01).alert is None
    one = week(completed=lambda number: 0, failed=lambda number: 1 if number == 0 else 0)
    assert budget(one, failure_rate=0.01).alert is None


@pytest.mark.parametrize("minutes", [1, 30, 59])
def test_the_burn_of_an_hour_is_that_of_sixty_minutes_at_any_minute(minutes: int) -> None:
    """All failed in the last whole hour, nothing did since: the younger hour pushes the older one out."""
    until = END + timedelta(minutes=minutes)
    hours = Hours(KEY, {END - HOUR: Hour(failed=600), END: Hour(completed=10 * minutes)})
    [found] = budgets([hours], {}, parse_targets({"mail": {"failure_rate": 0.1}}), until)
    assert found.burn["1h"] == pytest.approx((60 - minutes) / 60 / 0.1)
    assert found.burn["6h"] == pytest.approx(600 / (600 + 10 * minutes) / 0.1)


def test_waits_beyond_the_target_are_counted_from_the_sketches() -> None:
    found = budget(week(waits=lambda _: [100] * 19 + [40_000]), wait_p95="30s")
    assert found.cases.share == pytest.approx(0.05)
    assert found.left == pytest.approx(0.0)
    assert found.met


def test_a_queue_without_workers_alerts_although_nothing_runs() -> None:
    quiet = week(added=lambda _: 10, completed=lambda number: 0 if number < 3 else 10, waits=lambda _: [])
    stuck = Backlog(KEY, END, ready=30, delayed=0, waits=[timedelta(hours=3)] * 30)
    assert budget(quiet, wait_p95="30s").alert is None
    assert budget(quiet, stuck, wait_p95="30s").alert == "fast"
    assert budget(quiet, stuck, wait_p95="5h").alert is None


@pytest.mark.parametrize(
    ("given", "field", "rule"),
    [
        ({"mail": {"wait_p59": "3s"}}, "targets.mail", "did you mean wait_p95?"),
        ({"mail": {"wait_p95": "soon"}}, "targets.mail.wait_p95", "must be a duration"),
        ({"mail": {"failure_rate": 1}}, "targets.mail.failure_rate", "above 0 and below 1"),
        ({"mail": {"failure_rate": "x%"}}, "targets.mail.failure_rate", "above 0 and below 1"),
        ({"mail": {"window": "7d"}}, "targets.mail", "must have wait_p95 or failure_rate"),
        ({"mail": {"wait_p95": 1, "window": "1h"}}, "targets.mail.window", "at least a day"),
        ({"mail": "30s"}, "targets.mail", "must be a table"),
    ],
)
def test_a_wrong_target_is_refused_with_its_place(given: Any, field: str, rule: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        parse_targets(given)
    assert refused.value.field == field
    assert rule in refused.value.rule


def test_a_queue_has_the_target_of_its_name_else_of_the_longest_pattern() -> None:
    rate = {"failure_rate": 0.5}
    targets = parse_targets({"*": rate, "mail*": rate, "mail": {"failure_rate": 0.1}})
    assert [getattr(targets.of_queue(name), "queue", None) for name in ("mail", "mails", "x")] == ["mail", "mail*", "*"]
    assert parse_targets({"mail": rate}).of_queue("x") is None


def test_a_queue_is_empty_when_its_backlog_is_done_at_the_rates_of_the_last_hours() -> None:
    held = Backlog(KEY, END, ready=300, delayed=5)
    found = forecast(week(added=lambda _: 50, completed=lambda _: 100), held, None, END)
    assert (found.added_per_hour, found.ended_per_hour) == (50, 100)
    assert found.empty_in == timedelta(hours=6)
    growing = forecast(week(added=lambda _: 100, completed=lambda _: 90), held, None, END)
    assert (growing.empty_in, growing.grows) == (None, True)


def test_rates_are_over_the_time_that_was_observed() -> None:
    twenty = END - HOUR + timedelta(minutes=20)
    found = forecast(week(1, completed=lambda _: 100), None, None, twenty, observed_from=END - HOUR)
    assert found.ended_per_hour == pytest.approx(300)
    assert found.busiest_per_hour == pytest.approx(300)


def test_an_hour_that_has_just_begun_is_not_the_busiest_one_by_extrapolation() -> None:
    steady = Hours(KEY, {END - HOUR * number: Hour(started=100) for number in range(24)})
    assert forecast(steady, None, None, END + timedelta(minutes=1)).busiest_per_hour == 100
    surge = Hours(KEY, {**steady.hours, END: Hour(started=500)})
    assert forecast(surge, None, None, END + timedelta(minutes=1)).busiest_per_hour == 500


def test_the_jobs_that_run_at_a_time_follow_from_littles_law() -> None:
    busy = week(completed=lambda number: 7200 if number == 30 else 3600)
    found = forecast(busy, None, None, END)
    assert found.run_ms == pytest.approx(500, rel=0.02)
    assert found.load == pytest.approx(1.0, rel=0.02)
    assert found.slots == 2


@given(st.floats(0.01, 300), st.floats(1, 1e5), st.floats(0.001, 1e4))
def test_more_work_and_a_shorter_wait_never_need_fewer_slots(load: float, run_ms: float, wait: float) -> None:
    target = Target("mail", timedelta(seconds=wait))
    slots = slots_for(load, run_ms, target)
    assert slots is not None
    assert slots > load
    assert slots <= (slots_for(load * 1.5, run_ms, target) or math.inf)
    assert slots <= (slots_for(load, run_ms, Target("mail", timedelta(seconds=wait / 2))) or math.inf)


def test_the_slots_of_erlangs_formula_keep_the_target_in_a_simulated_queue() -> None:
    chance = np.random.default_rng(7)
    load, run_ms, target = 6.0, 400.0, Target("mail", timedelta(milliseconds=200))
    slots = slots_for(load, run_ms, target)
    assert slots is not None

    def late(slots: int) -> float:
        free = np.zeros(slots)
        at, waited = 0.0, 0
        for gap, run in zip(chance.exponential(run_ms / load, 20_000), chance.exponential(run_ms, 20_000), strict=True):
            at += gap
            first = int(free.argmin())
            waited += max(free[first] - at, 0.0) > 200
            free[first] = max(at, free[first]) + run
        return waited / 20_000

    assert late(slots) <= 0.06
    assert late(slots - 1) > 0.05


def noisy(seed: int, level: Callable[[int], float], spread: float = 0.1) -> Hours:
    """Returns two weeks with quiet nights and weekends whose days differ by chance; `level` by the number of a day."""
    chance = np.random.default_rng(seed)
    days = [float(level(day) * math.exp(chance.normal(0, spread))) for day in range(14)]

    def jobs(number: int) -> float:
        at = END - HOUR * (number + 1)
        rhythm = (0.2 if at.weekday() >= 5 else 1.0) * (1.2 + math.sin(at.hour / 24 * 2 * math.pi))
        return float(chance.poisson(100 * rhythm * days[number // 24]))

    return week(added=jobs, completed=jobs, waits=lambda _: [], runs=lambda _: [])


def test_weeks_without_a_change_raise_no_alarm_whatever_their_rhythm() -> None:
    assert [seed for seed in range(40) if changes([noisy(seed, lambda _: 1.0)], END)] == []


def test_a_doubled_number_of_jobs_is_found_with_its_size() -> None:
    found = [changes([noisy(seed, lambda day: 2.0 if day < 7 else 1.0)], END) for seed in range(10)]
    assert [[change.measure for change in each] for each in found] == [["jobs"]] * 10
    assert all(1.6 < each[0].factor < 2.5 for each in found)


def test_longer_waits_and_more_failures_are_found_and_one_bad_day_is_not() -> None:
    slower = week(waits=lambda number: [900 if number < 7 * 24 else 300] * 20)
    assert [(one.measure, round(one.factor)) for one in changes([slower], END)] == [("wait p95", 3)]
    failing = week(failed=lambda number: 5 if number < 7 * 24 else 1)
    assert [one.measure for one in changes([failing], END)] == ["failure rate"]
    once = week(waits=lambda number: [90_000 if number < 24 else 300] * 20)
    assert changes([once], END) == []
    assert changes([week(24 * 9)], END) == []


def test_a_queue_in_which_no_job_ends_any_more_has_changed_and_one_that_begins_again_too() -> None:
    jobs = {END - HOUR * number: Hour(completed=100) for number in range(1, 24 * 14 + 1)}
    stopped = Hours(KEY, {at: hour for at, hour in jobs.items() if at < END - 7 * 24 * HOUR})
    [change] = changes([stopped], END)
    assert (change.measure, change.before, change.now, change.factor) == ("jobs", 2400, 0, 0)
    long_ago = {END - 30 * 24 * HOUR: Hour(completed=1)}
    again = Hours(KEY, long_ago | {at: hour for at, hour in jobs.items() if at >= END - 7 * 24 * HOUR})
    assert [(one.measure, one.factor) for one in changes([again], END)] == [("jobs", math.inf)]


def test_a_new_queue_and_a_store_that_is_not_read_any_more_are_not_changes() -> None:
    new = week(24 * 7, waits=lambda _: [], runs=lambda _: [])
    assert changes([new], END) == []
    rows = [
        {"store": store, "queue": "mail", "hour": pd.Timestamp(END - HOUR * number), "completed": 100.0}
        for store, last in (("read", 1), ("unread", 24 * 7 + 1))
        for number in range(last, 24 * 14 + 1)
    ]
    throughput = pd.DataFrame([{**row, "added": 0.0, "started": 0.0, "failed": 0.0} for row in rows])
    log = [
        {"command": "ingest", "outcome": "ok", "started_at": END - 24 * HOUR * ago, "offsets": json.dumps(stores)}
        for ago, stores in ((7, {"unread": {}, "read": {}}), (0, {"read": {}}))
    ]
    seen = picture(throughput, pd.DataFrame(), pd.DataFrame(), log)
    assert changes(seen.queues, seen.until, seen.read_at) == []
    assert [one.key.store for one in changes(seen.queues, seen.until)] == ["unread"]


@given(st.lists(st.floats(0.2, 1e6), min_size=1, max_size=80))
def test_a_percentile_of_a_sketch_is_right_to_two_per_cent(values: list[float]) -> None:
    [hours] = hours_of(
        pd.DataFrame(),
        pd.DataFrame(
            [{"store": "s", "queue": "q", "hour": pd.Timestamp(END), "wait_sketch": sketch(values), "run_sketch": None}]
        ),
    )
    found = percentile(hours.hours[END].waits, 0.95)
    exact = sorted(values)[math.ceil(len(values) * 0.95) - 1]
    assert found is not None
    assert found == pytest.approx(exact if exact >= 1 else 0, rel=0.02)


def test_jobs_that_the_last_snapshot_did_not_find_are_not_held_any_more() -> None:
    def job(state: str, seen: datetime, due: datetime | None = None) -> dict[str, Any]:
        own = {"store": KEY.store, "queue": KEY.queue, "state": state, "created_at": END - HOUR}
        return {**own, "scheduled_at": due, "seen_at": seen}

    rows = [
        job("waiting", END),
        job("waiting", END - HOUR),
        job("delayed", END, END + HOUR),
        job("delayed", END, END - timedelta(minutes=1)),
        job("active", END),
    ]
    found = backlogs(pd.DataFrame(rows))[KEY]
    assert (found.ready, found.delayed) == (2, 1)
    assert found.waits == [HOUR, timedelta(minutes=1)]
    assert [found.waiting_for(timedelta(minutes=minutes)) for minutes in (0, 1, 59, 60)] == [2, 1, 1, 0]


def test_a_lake_is_observed_until_its_last_ingest_began() -> None:
    ran = [
        {"command": "ingest", "outcome": outcome, "started_at": END + HOUR * hours}
        for hours, outcome in ((2, "ok"), (3, "failed"))
    ]
    assert observed_until([week(3)], ran, []) == END + 2 * HOUR
    assert observed_until([week(3)], [], []) == END


def test_metrics_are_text_that_prometheus_reads(tmp_path: Path) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    found = budget(week(completed=lambda _: 995, failed=lambda _: 5), failure_rate="1%")
    write_metrics(tmp_path / "slo.prom", metrics_text([found], END))
    families = {family.name: family for family in text_string_to_metric_families((tmp_path / "slo.prom").read_text())}
    [left] = families["jobwire_slo_budget_left_ratio"].samples
    assert left.value == pytest.approx(0.5)
    assert left.labels == {"store": KEY.store, "queue": "mail", "target": "failure_rate"}
    assert {sample.labels["window"] for sample in families["jobwire_slo_burn_rate"].samples} == {"1h", "6h", "3d"}
    assert [path.name for path in tmp_path.iterdir()] == ["slo.prom"]
