"""Cron patterns with the next times that npm ``cron-parser`` 5 computes, daylight saving included.

All four peers use that package, and the worker that finishes a run computes the next one. In a mixed fleet both sides
must therefore agree to the second. The syntax and its special cases are in ``docs/cron.md``.

>>> from datetime import datetime, UTC
>>> Cron.parse("30 2 * * *").next_after(datetime(2027, 3, 14, tzinfo=UTC), "America/New_York").isoformat()
'2027-03-14T07:30:00+00:00'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from jobwire.cron.calendar import DAY, first_match, last_match
from jobwire.cron.fields import Fields, parse_fields
from jobwire.cron.plain import plain_latest, plain_next
from jobwire.cron.walk import walk_backward, walk_forward
from jobwire.cron.zones import offset_at, zone_of
from jobwire.errors import InvalidOption

__all__ = ["Cron"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_YEARS: Final = (1900, 9900)
_EARLIEST_MS, _LATEST_MS = ((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND for year in _YEARS)
# A clock change this close to a day may still affect the peer's search on that day.
_NEAR: Final = 4 * 3600


@dataclass(frozen=True, slots=True)
class Cron:
    """A pattern of 5 fields, or 6 with seconds first, or an alias such as ``@daily``. Make one with `parse`."""

    text: str
    fields: Fields = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, *, repeats: bool = False) -> Cron:
        """Parses a pattern. Raises `InvalidOption` with the rule that it breaks.

        ``repeats`` accepts a value twice in a field, as in ``0,7`` or ``*,5``. bullmq 5, on cron-parser 4.9, stores
        such patterns. cron-parser 5 refuses them.

        Examples:
            >>> Cron.parse("*/15 9-17 * * mon-fri")
            Cron(text='*/15 9-17 * * mon-fri')
        """
        return cls(text, parse_fields(text, repeats=repeats))

    def next_after(self, when: datetime, tz: str | tzinfo = "UTC") -> datetime:
        """Returns the first occurrence strictly after an aware datetime, in UTC."""
        return _EPOCH + self.next_ms(_since_epoch(when) // _MILLISECOND, tz) * _MILLISECOND

    def prev_before(self, when: datetime, tz: str | tzinfo = "UTC") -> datetime:
        """Returns the last occurrence strictly before an aware datetime, in UTC. See `latest_ms` on daylight saving."""
        return _EPOCH + self.latest_ms((_since_epoch(when) - _MICROSECOND) // _MILLISECOND, tz) * _MILLISECOND

    def next_ms(self, after_ms: int, tz: str | tzinfo = "UTC") -> int:
        """Returns the first occurrence strictly after an instant, both in milliseconds since 1970."""
        zone = zone_of(tz)
        _check_span(after_ms)
        start = after_ms // 1000 + 1
        found = self._on_quiet_days(first_match, zone, start)
        if found is None:
            found = walk_forward(self.fields, zone, after_ms)
        if found is None:
            found = plain_next(self.fields, zone, start)
        return self._in_milliseconds(found)

    def latest_ms(self, at_ms: int, tz: str | tzinfo = "UTC") -> int:
        """Returns the last occurrence at or before an instant, both in milliseconds since 1970.

        It is the peer's ``prev()``, which treats daylight saving differently from ``next()``. If the clocks skip an
        hour, `next_ms` moves its occurrence and this does not find it. If they repeat an hour, `next_ms` takes it once
        and this finds it twice.
        """
        zone = zone_of(tz)
        _check_span(at_ms)
        start = at_ms // 1000
        found = self._on_quiet_days(last_match, zone, start)
        if found is None:
            found = walk_backward(self.fields, zone, at_ms + 1)
        if found is None:
            found = plain_latest(self.fields, zone, start)
        return self._in_milliseconds(found)

    def _on_quiet_days(self, match: Callable[[Fields, int], int | None], zone: tzinfo, start: int) -> int | None:
        """Returns the occurrence by calendar alone, or None if the clocks change on the first day or on the day
        found."""
        offset = offset_at(zone, start)
        wall = match(self.fields, start + offset)
        if wall is None or not _quiet(zone, start, offset):
            return None
        if wall // DAY != (start + offset) // DAY:
            offset = offset_at(zone, wall - offset)
            if not _quiet(zone, wall - offset, offset):
                return None
        return wall - offset

    def _in_milliseconds(self, found: int | None) -> int:
        if found is None:
            raise InvalidOption("cron", self.text, "has no occurrence within reach of the calendar")
        return found * 1000


def _quiet(zone: tzinfo, at: int, offset: int) -> bool:
    midnight = at - (at + offset) % DAY
    return offset_at(zone, midnight - _NEAR) == offset == offset_at(zone, midnight + DAY + _NEAR)


def _since_epoch(when: datetime) -> timedelta:
    if when.utcoffset() is None:
        raise InvalidOption("when", when, "must be an aware datetime")
    return when - _EPOCH


def _check_span(ms: int) -> None:
    if not _EARLIEST_MS <= ms < _LATEST_MS:
        raise InvalidOption("when", ms, f"must lie between the years {_YEARS[0]} and {_YEARS[1]}")
