"""Days, hours and distances of timestamps in UTC, whatever time zone the Spark session has."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

HOUR_MS = 3_600_000
_HOUR_US = HOUR_MS * 1000
_DAY_US = 24 * _HOUR_US
_MINUTE_US = 60_000_000


def utc_day(moment: Column) -> Column:
    """Returns the date of a timestamp."""
    return F.date_from_unix_date(_whole(F.unix_micros(moment), _DAY_US).cast("int"))


def utc_hour(moment: Column) -> Column:
    """Returns the timestamp of the beginning of its hour."""
    return F.timestamp_micros(hours_since_epoch(moment) * _HOUR_US)


def utc_minute(moment: Column) -> Column:
    """Returns the timestamp of the beginning of its minute."""
    return F.timestamp_micros(_whole(F.unix_micros(moment), _MINUTE_US) * _MINUTE_US)


def hours_since_epoch(moment: Column) -> Column:
    """Returns whole hours since 1970, for counting from one to another."""
    return _whole(F.unix_micros(moment), _HOUR_US)


def ms_between(start: Column, end: Column) -> Column:
    """Returns whole milliseconds, rounded down; at least 0, as clocks of two nodes differ. Null if one is null."""
    passed = _whole(F.unix_micros(end) - F.unix_micros(start), 1000)
    return F.when(passed < 0, 0).otherwise(passed)


def _whole(number: Column, unit: int) -> Column:
    """Returns how many whole units, rounded down; exact, as no fraction is divided."""
    return ((number - F.pmod(number, F.lit(unit))) / unit).cast("bigint")


def midnight(day: date) -> datetime:
    """Returns when the day begins."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def days_from(since: date, until: date) -> list[date]:
    """Returns the days of [since, until)."""
    return [since + timedelta(days=number) for number in range((until - since).days)]
