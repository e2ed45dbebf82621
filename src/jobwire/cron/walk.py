"""The search over a day on which the clocks change, step for step as in ``cron-parser`` 5.

The peer has no rule for such days apart from its search. Which of two equal wall times it returns, and whether it moves
a skipped time, depends on where the search began and which steps it took. So we repeat the search itself. It moves a
wall clock by months, days, hours, minutes and seconds until every field matches. When it steps forward by hours, it
remembers two things:

* a step that jumped over whole hours: the hour it landed on also stands for the skipped ones, so 02:30 runs at 03:30;
* a step that came to the start of the hour it left: that hour is a repetition, and is passed over once.

Patterns that allow all 24 hours remember nothing, so they run through both passes of a repeated hour.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from datetime import tzinfo
from typing import Final

from jobwire.cron.calendar import DAY, date_of, matching_days, midnight
from jobwire.cron.fields import Fields
from jobwire.cron.zones import offset_at

_MINUTE: Final = 60
_HOUR: Final = 3600
# The longest search that succeeds, 40 years for a fifth weekday of February, takes about 1,600 steps. The peer gives up
# after 10,000, which it reaches when half-hour changes make it loop.
_MOST_STEPS: Final = 2_500


class WallClock:
    """An instant with its offset. Reads and sets wall time as the peer's date library does."""

    __slots__ = ("at", "offset", "zone")

    def __init__(self, zone: tzinfo, at: int) -> None:
        self.zone = zone
        self.at = at
        self.offset = offset_at(zone, at)

    @property
    def wall(self) -> int:
        return self.at + self.offset

    @property
    def hour(self) -> int:
        return self.wall % DAY // _HOUR

    @property
    def minute(self) -> int:
        return self.wall // _MINUTE % 60

    @property
    def second(self) -> int:
        return self.wall % 60

    def copy(self) -> WallClock:
        return WallClock(self.zone, self.at)

    def shift(self, seconds: int) -> None:
        self.at += seconds
        self.offset = offset_at(self.zone, self.at)

    def show(self, wall: int) -> None:
        """Moves to a wall time. If it occurs twice, to the one nearest in offset. In a gap, as far behind the gap as
        the time lies inside it."""
        at = wall - self.offset
        offset = offset_at(self.zone, at)
        if offset != self.offset:
            at = wall - offset
            other = offset_at(self.zone, at)
            if other != offset:
                at = wall - min(offset, other)
                offset = max(offset, other)
        self.at, self.offset = at, offset

    def show_start_of(self, seconds: int) -> None:
        self.show(self.wall - self.wall % seconds)

    def add_days(self, days: int) -> None:
        self.show(self.wall + days * DAY)

    def add_months(self, months: int) -> None:
        day = date_of(self.wall)
        years, month = divmod(day.month - 1 + months, 12)
        year, month = day.year + years, month + 1
        self.show(midnight(year, month, min(day.day, monthrange(year, month)[1])) + self.wall % DAY)

    def show_first_of_month(self) -> None:
        day = date_of(self.wall)
        self.show(midnight(day.year, day.month, 1))


def walk_forward(fields: Fields, zone: tzinfo, after_ms: int) -> int | None:
    """Returns the result of the peer's ``next()``, in seconds. None where it would give up or go back in time."""
    start, rest = divmod(after_ms, 1000)
    walk = _Walk(fields, WallClock(zone, start), forward=True)
    if rest:
        walk.step(1)
    found = walk.search(start)
    return found if found is not None and found > start else None


def walk_backward(fields: Fields, zone: tzinfo, before_ms: int) -> int | None:
    """Returns the result of the peer's ``prev()``, in seconds. None where it would give up."""
    start, rest = divmod(before_ms, 1000)
    walk = _Walk(fields, WallClock(zone, start), forward=False)
    found = walk.search(None if rest else start)
    return found if found is not None and found * 1000 < before_ms else None


class _Walk:
    """One search. It checks the fields from the largest unit to the smallest, and starts again after each move."""

    def __init__(self, fields: Fields, clock: WallClock, *, forward: bool) -> None:
        self._fields = fields
        self._clock = clock
        self._forward = forward
        self._remembers = forward and len(fields.hours) < 24
        self._first_skipped: int | None = None
        self._landing: int | None = None
        self._repeated: int | None = None
        self._judged: tuple[int, bool] = (-1, False)

    def search(self, excluded: int | None) -> int | None:
        fields, clock = self._fields, self._clock
        for _ in range(_MOST_STEPS):
            day = date_of(clock.wall)
            if day.month not in fields.months:
                self._step_month()
            elif not matching_days(fields, day.year, day.month) >> day.day & 1:
                self._step_day()
            elif not self._hour_matches():
                continue
            elif clock.minute not in fields.minutes:
                self._to_minute()
            elif clock.second not in fields.seconds:
                self._to_second()
            elif clock.at == excluded:
                self.step(1)
            else:
                return clock.at
        return None

    def step(self, seconds: int) -> None:
        """Moves to the next second, or to the start of the next minute or hour. Backward: to the end of the one
        before."""
        clock = self._clock
        hour, offset = clock.hour, clock.offset
        if self._forward:
            clock.shift(seconds)
            if seconds > 1:
                clock.show_start_of(seconds)
        else:
            clock.show_start_of(seconds)
            clock.shift(-1)
        if self._remembers:
            self._remember(hour, offset)

    def _remember(self, hour: int, offset: int) -> None:
        clock = self._clock
        advance = (clock.hour - hour) % 24
        if clock.offset > offset and advance >= 2:
            self._first_skipped, self._landing = (hour + 1) % 24, clock.hour
        elif advance == 0 and clock.wall % _HOUR == 0:
            self._repeated = clock.hour

    def _step_day(self) -> None:
        if not self._forward:
            self._clock.add_days(-1)
        self._clock.add_days(1)
        self._clock.show_start_of(DAY)
        if not self._forward:
            self._clock.shift(-1)

    def _step_month(self) -> None:
        if not self._forward:
            self._clock.add_months(-1)
        self._clock.add_months(1)
        self._clock.show_first_of_month()
        if not self._forward:
            self._clock.shift(-1)

    def _hour_matches(self) -> bool:
        clock, hours = self._clock, self._fields.hours
        hour = clock.hour
        if self._landing == hour and self._skipped_match():
            return True
        if self._repeated == hour:
            self._repeated = None
            self.step(_HOUR)
            return False
        if hour in hours:
            return True
        self._first_skipped = self._landing = None
        target = self._nearest(hours, hour)
        if target is None:
            self._step_day()
            return False
        if self._clocks_change_today():
            for _ in range(abs(target - hour)):
                self.step(_HOUR)
                if clock.hour >= target if self._forward else clock.hour <= target:
                    break
        else:
            clock.show(clock.wall + (target - hour) * _HOUR)
        self._show_minute(self._extreme(self._fields.minutes))
        self._show_second(self._extreme(self._fields.seconds))
        return False

    def _skipped_match(self) -> bool:
        skipped, hour = self._first_skipped, self._clock.hour
        while skipped is not None and skipped != hour:
            if skipped in self._fields.hours:
                return True
            skipped = (skipped + 1) % 24
        return False

    def _clocks_change_today(self) -> bool:
        # Computed once per day: if midnight occurs twice, the start of the day is another instant the second time.
        day = self._clock.wall // DAY
        if self._judged[0] != day:
            start = self._clock.copy()
            start.show_start_of(DAY)
            end = self._clock.copy()
            end.add_days(1)
            end.show_start_of(DAY)
            end.shift(-1)
            self._judged = (day, start.offset != end.offset)
        return self._judged[1]

    def _to_minute(self) -> None:
        minutes = self._fields.minutes
        minute = self._nearest(minutes, self._clock.minute)
        if minute is None:
            self.step(_HOUR)
            minute = self._extreme(minutes)
        self._show_minute(minute)
        self._show_second(self._extreme(self._fields.seconds))

    def _to_second(self) -> None:
        seconds = self._fields.seconds
        second = self._nearest(seconds, self._clock.second)
        if second is None:
            self.step(_MINUTE)
            second = self._extreme(seconds)
        self._show_second(second)

    def _show_minute(self, minute: int) -> None:
        self._clock.show(self._clock.wall + (minute - self._clock.minute) * _MINUTE)

    def _show_second(self, second: int) -> None:
        self._clock.show(self._clock.wall + second - self._clock.second)

    def _nearest(self, values: Sequence[int], value: int) -> int | None:
        if self._forward:
            return next((later for later in values if later > value), None)
        return next((earlier for earlier in reversed(values) if earlier < value), None)

    def _extreme(self, values: Sequence[int]) -> int:
        return values[0 if self._forward else -1]
