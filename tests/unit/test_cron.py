"""Cron: the recorded answers of cron-parser, the rules of the dialect, and what holds for every pattern."""

from __future__ import annotations

import doctest
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.cron_vectors import difference, read_vectors

from jobwire import cron
from jobwire.cron import Cron
from jobwire.cron.fields import parse_fields
from jobwire.cron.plain import plain_latest, plain_next
from jobwire.cron.walk import walk_backward, walk_forward
from jobwire.errors import InvalidOption

RECORDED = Path(__file__).parent / "data" / "cron_vectors.jsonl"
ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "Pacific/Chatham",
    "Asia/Kathmandu",
    "Asia/Beirut",
    "America/Santiago",
    "Antarctica/Troll",
]


def local(zone: str, text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


def times_of(pattern: str, zone: str, start: str, count: int) -> list[str]:
    """The next few occurrences as local time with its offset."""
    when, found = local(zone, start), []
    for _ in range(count):
        when = Cron.parse(pattern).next_after(when, zone)
        found.append(when.astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M:%S %z"))
    return found


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(cron).failed == 0
    assert doctest.testmod(cron).attempted > 0


@pytest.mark.timeout(600)
def test_every_recorded_answer_of_cron_parser_is_ours() -> None:
    vectors = read_vectors(RECORDED.read_text("utf-8"))

    differences = [found for vector in vectors if (found := difference(vector))]

    assert differences == []
    assert len(vectors) > 8000
    assert len({vector.zone.key for vector in vectors}) > 30


@pytest.mark.parametrize(
    ("pattern", "zone", "start", "expected"),
    [
        # Spring: the clocks skip 02:00 to 03:00.
        ("30 2 * * *", "America/New_York", "2027-03-13 12:00", ["03-14 03:30:00 -0400", "03-15 02:30:00 -0400"]),
        ("30 2,3 * * *", "Europe/Berlin", "2026-03-28 12:00", ["03-29 03:30:00 +0200", "03-30 02:30:00 +0200"]),
        ("0 * * * *", "Europe/Berlin", "2026-03-29 00:30", ["03-29 01:00:00 +0100", "03-29 03:00:00 +0200"]),
        # Autumn: the hour from 02:00 comes twice in Berlin, the one from 01:00 in New York.
        ("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", ["10-25 02:30:00 +0200", "10-26 02:30:00 +0100"]),
        ("30 1 * * *", "America/New_York", "2026-10-31 12:00", ["11-01 01:30:00 -0400", "11-02 01:30:00 -0500"]),
        ("30 * * * *", "America/New_York", "2026-11-01 01:00", ["11-01 01:30:00 -0400", "11-01 01:30:00 -0500"]),
    ],
)
def test_clock_changes_move_a_skipped_time_and_run_a_repeated_one_once(
    pattern: str, zone: str, start: str, expected: list[str]
) -> None:
    assert times_of(pattern, zone, start, len(expected)) == expected


def test_the_latest_time_goes_by_the_clocks_alone() -> None:
    zone = "America/New_York"
    after_the_moved_time = local(zone, "2027-03-14 03:30:01")
    after_the_second_pass = local(zone, "2026-11-01 01:30:01").replace(fold=1)

    assert Cron.parse("30 2 * * *").prev_before(after_the_moved_time, zone) == local(
        zone, "2027-03-13 02:30"
    ).astimezone(UTC)
    assert Cron.parse("30 1 * * *").prev_before(after_the_second_pass, zone) == datetime(2026, 11, 1, 6, 30, tzinfo=UTC)


def test_the_time_before_is_strictly_before_on_both_passes_of_an_hour() -> None:
    second_pass = local("America/New_York", "2026-11-01 01:30").replace(fold=1)

    found = Cron.parse("30 1 * * *").prev_before(second_pass, "America/New_York")

    assert found == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)


def test_a_search_that_sends_the_peer_in_circles_still_ends_in_the_next_match() -> None:
    # Clocks go back half an hour at 02:00 on Lord Howe Island; cron-parser gives up here.
    found = Cron.parse("10 1 * * *").next_after(local("Australia/Lord_Howe", "2027-04-04 01:20"), "Australia/Lord_Howe")

    assert found == local("Australia/Lord_Howe", "2027-04-05 01:10")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("H * * * *", "H is drawn at random"),
        ("0 0 * * H#2", "H is drawn at random"),
        ("H(0-9)/3 * * * *", "H is drawn at random"),
        ("0 0 31 2 *", "names a day that its months never have"),
        ("0 0 31 4,6 *", "names a day that its months never have"),
        ("60 * * * *", "minute: '60' is outside 0-59"),
        ("0 22-2 * * *", "hour: '22-2' is not a rising range inside 0-23"),
        ("0 0 15W * *", "day of month: '15W' is not made of"),
        ("*/0 * * * *", "a step must be 1 or more"),
        ("5,5 * * * *", "minute: a value is given twice"),
        ("0 0 * * foo", "'foo' is not the name"),
        ("0 0 * * L", "L needs a weekday before it"),
        ("0 0 * * 1#6", "must be 1 to 5"),
        ("0 0 * * 1#2.0", "must be 1 to 5"),
        ("* * * * * * *", "must have 5 fields"),
        ("   ", "day of week: '' is not made of"),
    ],
)
def test_a_bad_pattern_is_refused_with_its_rule(text: str, rule: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        Cron.parse(text)

    assert (refused.value.field, refused.value.value) == ("cron", text)
    assert rule in refused.value.rule


def test_repeated_values_are_read_on_request_as_bullmq_5_stores_them() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)

    assert Cron.parse("0 0 * * 0,7", repeats=True).next_after(start) == datetime(2026, 1, 4, tzinfo=UTC)
    assert Cron.parse("*,5 * * * *", repeats=True).next_after(start) == start + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("tz", "hour"),
    [
        ("utc", 12),
        ("GMT", 12),
        ("UTC+3", 9),
        ("utc-5:30", 17.5),
        ("+05:30", 6.5),
        ("+0530", 6.5),
        ("-03", 15),
        ("asia/tokyo", 3),
        ("Etc/GMT+3", 15),
    ],
)
def test_zones_are_named_as_node_takes_them(tz: str, hour: float) -> None:
    found = Cron.parse("0 12 * * *").next_after(datetime(2026, 6, 15, tzinfo=UTC), tz)

    assert found == datetime(2026, 6, 15, tzinfo=UTC) + timedelta(hours=hour)


@pytest.mark.parametrize(
    "tz", ["", "Nope/Zone", "../etc/passwd", "America", "local", "localtime", "-5", "UTC+30", "\0"]
)
def test_an_unknown_zone_is_refused(tz: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        Cron.parse("* * * * *").next_ms(0, tz)

    assert (refused.value.field, refused.value.value) == ("tz", tz)


def test_a_naive_datetime_is_refused() -> None:
    with pytest.raises(InvalidOption, match="must be an aware datetime"):
        Cron.parse("* * * * *").next_after(datetime(2026, 1, 1))  # noqa: DTZ001  naive on purpose


@pytest.mark.parametrize("year", [1800, 9950])
def test_a_year_that_no_calendar_reaches_is_refused(year: int) -> None:
    with pytest.raises(InvalidOption, match="must lie between the years"):
        Cron.parse("* * * * *").next_after(datetime(year, 1, 1, tzinfo=UTC))


def test_the_rarest_pattern_is_found_across_a_year_without_leap_day() -> None:
    fifth_mondays = [day for year in range(2073, 2200) if (day := _leap_day(year)) and day.isoweekday() == 1]

    found = Cron.parse("0 0 30 2 mon#5").next_after(datetime(2072, 3, 1, tzinfo=UTC))

    assert found.date() == fifth_mondays[0] == date(2112, 2, 29)


def _leap_day(year: int) -> date | None:
    try:
        return date(year, 2, 29)
    except ValueError:
        return None


# ---- what holds for every pattern


def listed(low: int, high: int) -> st.SearchStrategy[str]:
    return st.one_of(
        st.just("*"),
        st.lists(st.integers(low, high), min_size=1, max_size=4, unique=True).map(lambda ns: ",".join(map(str, ns))),
        st.integers(1, high).map(lambda step: f"*/{step}"),
    )


patterns = st.one_of(
    st.tuples(listed(0, 59), listed(0, 23), listed(1, 28), listed(1, 12), listed(0, 6)).map(" ".join),
    st.tuples(listed(0, 59), listed(0, 59), listed(0, 23), listed(1, 28), listed(1, 12), listed(0, 6)).map(" ".join),
)
instants = st.integers(1_577_836_800_000, 1_924_992_000_000)


def values(text: str, low: int, high: int) -> set[int]:
    """Read one generated field again, in the simplest way."""
    if text == "*":
        return set(range(low, high + 1))
    if text.startswith("*/"):
        return set(range(low, high + 1, int(text[2:])))
    return {int(part) for part in text.split(",")}


def mismatches(pattern: str, shown: datetime) -> set[str]:
    """The fields that a wall time does not satisfy."""
    fields = pattern.split()
    second, minute, hour, day, month, weekday = fields if len(fields) == 6 else ["0", *fields]
    wrong = {
        name
        for name, text, value, high in [
            ("second", second, shown.second, 59),
            ("minute", minute, shown.minute, 59),
            ("hour", hour, shown.hour, 23),
        ]
        if value not in values(text, 0, high)
    }
    by_day = shown.day in values(day, 1, 31)
    by_weekday = shown.isoweekday() % 7 in {value % 7 for value in values(weekday, 0, 7)}
    either = day != "*" and weekday != "*"
    if shown.month not in values(month, 1, 12) or not ((by_day or by_weekday) if either else (by_day and by_weekday)):
        wrong.add("day")
    return wrong


@given(patterns, st.sampled_from(ZONES), instants)
def test_times_rise_and_match_the_pattern(pattern: str, zone: str, start: int) -> None:
    found = Cron.parse(pattern)
    at = start
    for _ in range(4):
        later = found.next_ms(at, zone)
        assert later > at
        shown = datetime.fromtimestamp(later / 1000, ZoneInfo(zone))
        wrong = mismatches(pattern, shown)
        if wrong:  # a time in a gap, moved to the hour after it
            assert wrong == {"hour"}
            hour_before = datetime.fromtimestamp(later / 1000 - 3600, ZoneInfo(zone))
            assert shown.utcoffset() != hour_before.utcoffset()
        at = later


@given(patterns, instants)
def test_no_time_is_left_out(pattern: str, start: int) -> None:
    found = Cron.parse(pattern)
    later = found.next_ms(start)
    assume(later - start < 3 * 3_600_000)

    skipped = [
        second
        for second in range(start // 1000 + 1, later // 1000)
        if not mismatches(pattern, datetime.fromtimestamp(second, UTC))
    ]

    assert skipped == []


@given(patterns, instants)
def test_without_clock_changes_the_latest_time_turns_the_next_one_round(pattern: str, start: int) -> None:
    found = Cron.parse(pattern)
    later = found.next_ms(start, "Asia/Kathmandu")

    assert found.latest_ms(later, "Asia/Kathmandu") == later
    assert found.latest_ms(later - 1, "Asia/Kathmandu") <= start
    assert found.next_ms(found.latest_ms(start, "Asia/Kathmandu"), "Asia/Kathmandu") == later


@given(patterns, st.sampled_from(ZONES), instants)
def test_the_calendar_answers_as_the_walk_would(pattern: str, zone: str, start: int) -> None:
    found = Cron.parse(pattern)
    walked = walk_forward(found.fields, ZoneInfo(zone), start)
    walked_back = walk_backward(found.fields, ZoneInfo(zone), start + 1)

    assert walked is None or found.next_ms(start, zone) == walked * 1000
    assert walked_back is None or found.latest_ms(start, zone) == walked_back * 1000


@given(patterns, st.sampled_from(ZONES), instants)
def test_the_plain_rule_gives_only_times_that_clocks_show(pattern: str, zone: str, start: int) -> None:
    fields, second = Cron.parse(pattern).fields, start // 1000
    later, earlier = plain_next(fields, ZoneInfo(zone), second), plain_latest(fields, ZoneInfo(zone), second)

    assert later is not None
    assert earlier is not None
    assert earlier <= second <= later
    for found in (earlier, later):
        assert mismatches(pattern, datetime.fromtimestamp(found, ZoneInfo(zone))) == set()


def test_days_that_the_only_month_does_not_have_may_be_given_twice() -> None:
    assert parse_fields("0 0 27/1,31 6 *").days == {27, 28, 29, 30}
    assert parse_fields("0 0 28/1,30,31 2 *").days == {28, 29}
    for refused in ("0 0 27/1,31 6,9 *", "0 0 28/1,29 2 *", "0 0 31,31 6 1"):
        with pytest.raises(InvalidOption, match="given twice"):
            parse_fields(refused)
