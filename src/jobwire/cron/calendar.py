"""Matches on a calendar without time zones.

A wall time is the number of seconds since 1970-01-01 00:00 by the local clock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import monthrange
from datetime import date
from typing import Final

from jobwire.cron.fields import Fields

DAY: Final = 86_400
_EPOCH: Final = date(1970, 1, 1).toordinal()
_WEEKLY: Final = sum(1 << 7 * week for week in range(5))
# The rarest pattern, a fifth weekday of February, occurs once in 28 years, or in 40 across 2100.
_HORIZON_YEARS: Final = 60


def date_of(wall: int) -> date:
    return date.fromordinal(wall // DAY + _EPOCH)


def midnight(year: int, month: int, day: int) -> int:
    return (date(year, month, day).toordinal() - _EPOCH) * DAY


def matching_days(fields: Fields, year: int, month: int) -> int:
    """Returns the days of a month that match, as bits: bit 1 is the first of the month."""
    if month not in fields.months:
        return 0
    first, length = monthrange(year, month)
    whole = (2 << length) - 2
    if fields.any_day and fields.any_weekday:
        return whole
    by_day = sum(1 << day for day in fields.days)
    if fields.last_day:
        by_day |= 1 << length
    if fields.any_weekday:
        return by_day & whole
    first_weekday = (first + 1) % 7
    by_weekday = 0
    for weekday in fields.weekdays:
        earliest = 1 + (weekday - first_weekday) % 7
        by_weekday |= 1 << earliest + 7 * (fields.nth - 1) if fields.nth else _WEEKLY << earliest
    for weekday in fields.last_weekdays:
        earliest = 1 + (weekday - first_weekday) % 7
        by_weekday |= 1 << earliest + (length - earliest) // 7 * 7
    return (by_weekday if fields.any_day else by_weekday | by_day) & whole


def first_match(fields: Fields, wall: int) -> int | None:
    """Returns the first matching wall time at or after ``wall``."""
    today = date_of(wall)
    year, month = today.year, today.month
    days = matching_days(fields, year, month)
    if days >> today.day & 1:
        time = _time_from(fields, wall % DAY)
        if time is not None:
            return wall - wall % DAY + time
    days = days >> today.day + 1 << today.day + 1
    last_year = min(year + _HORIZON_YEARS, date.max.year)
    while not days:
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        if year > last_year:
            return None
        days = matching_days(fields, year, month)
    time = fields.hours[0] * 3600 + fields.minutes[0] * 60 + fields.seconds[0]
    return midnight(year, month, (days & -days).bit_length() - 1) + time


def last_match(fields: Fields, wall: int) -> int | None:
    """Returns the last matching wall time at or before ``wall``."""
    today = date_of(wall)
    year, month = today.year, today.month
    days = matching_days(fields, year, month)
    if days >> today.day & 1:
        time = _time_until(fields, wall % DAY)
        if time is not None:
            return wall - wall % DAY + time
    days &= (1 << today.day) - 1
    first_year = max(year - _HORIZON_YEARS, date.min.year)
    while not days:
        year, month = (year, month - 1) if month > 1 else (year - 1, 12)
        if year < first_year:
            return None
        days = matching_days(fields, year, month)
    time = fields.hours[-1] * 3600 + fields.minutes[-1] * 60 + fields.seconds[-1]
    return midnight(year, month, days.bit_length() - 1) + time


def _time_from(fields: Fields, time: int) -> int | None:
    hours, minutes, seconds = fields.hours, fields.minutes, fields.seconds
    hour, minute, second = time // 3600, time // 60 % 60, time % 60
    h = bisect_left(hours, hour)
    if h < len(hours) and hours[h] == hour:
        m = bisect_left(minutes, minute)
        if m < len(minutes) and minutes[m] == minute:
            s = bisect_left(seconds, second)
            if s < len(seconds):
                return hour * 3600 + minute * 60 + seconds[s]
            m += 1
        if m < len(minutes):
            return hour * 3600 + minutes[m] * 60 + seconds[0]
        h += 1
    return hours[h] * 3600 + minutes[0] * 60 + seconds[0] if h < len(hours) else None


def _time_until(fields: Fields, time: int) -> int | None:
    hours, minutes, seconds = fields.hours, fields.minutes, fields.seconds
    hour, minute, second = time // 3600, time // 60 % 60, time % 60
    h = bisect_right(hours, hour) - 1
    if h >= 0 and hours[h] == hour:
        m = bisect_right(minutes, minute) - 1
        if m >= 0 and minutes[m] == minute:
            s = bisect_right(seconds, second) - 1
            if s >= 0:
                return hour * 3600 + minute * 60 + seconds[s]
            m -= 1
        if m >= 0:
            return hour * 3600 + minutes[m] * 60 + seconds[-1]
        h -= 1
    return hours[h] * 3600 + minutes[-1] * 60 + seconds[-1] if h >= 0 else None
