"""Parses a cron pattern into sets of values.

The syntax is that of npm ``cron-parser`` 5, including what it tolerates: peers store every pattern that it accepts, and
a stored pattern must mean the same here. It parses a field by substitution: names first, then ``*`` and ``?`` by the
whole range as text. So ``1*`` among minutes is ``10-59``. ``docs/cron.md`` lists such cases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NoReturn

from jobwire.errors import InvalidOption

_ALIASES: Final = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
    "@minutely": "0 * * * * *",
    "@secondly": "* * * * * *",
    "@weekdays": "0 0 0 * * 1-5",
    "@weekends": "0 0 0 * * 0,6",
}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES: Final = {name: str(n) for n, name in enumerate(_MONTHS, 1)} | {name: str(n) for n, name in enumerate(_WEEKDAYS)}
_LONGEST_TEXT: Final = 1024
_LONGEST_MONTHS: Final = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# White space as in JavaScript. Python's differs by five control characters and U+FEFF.
_SPACE: Final = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_SPACES: Final = re.compile(f"[{_SPACE}]+")


@dataclass(frozen=True, slots=True)
class _Unit:
    name: str
    low: int
    high: int
    letters: str = ""
    named: bool = False


_SECOND: Final = _Unit("second", 0, 59)
_MINUTE: Final = _Unit("minute", 0, 59)
_HOUR: Final = _Unit("hour", 0, 23)
_DAY: Final = _Unit("day of month", 1, 31, letters="L")
_MONTH: Final = _Unit("month", 1, 12, named=True)
_WEEKDAY: Final = _Unit("day of week", 0, 7, letters="L", named=True)


@dataclass(frozen=True, slots=True)
class Fields:
    """The values that a pattern allows. Sequences are sorted. Weekdays run from 0 (Sunday) to 6.

    ``any_day`` and ``any_weekday`` are True if the field was a lone ``*`` or ``?``. If both are False, a day matches
    when either field does. A full range such as ``1-31`` does not count as ``*``.
    """

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    last_day: bool
    any_day: bool
    months: frozenset[int]
    weekdays: frozenset[int]
    last_weekdays: frozenset[int]
    nth: int
    any_weekday: bool


def parse_fields(text: str, *, repeats: bool = False) -> Fields:
    """Parses a pattern. Raises `InvalidOption` with the rule that it breaks."""
    return _Reader(text, repeats).read()


class _Reader:
    def __init__(self, text: str, repeats: bool) -> None:
        self._text = text
        self._repeats = repeats

    def _refuse(self, rule: str) -> NoReturn:
        raise InvalidOption("cron", self._text, rule)

    def read(self) -> Fields:
        second, minute, hour, day, month, weekday = self._split()
        weekday_part, nth = self._nth(weekday)
        months = frozenset(self._numbers(_MONTH, month))
        days = self._values(_DAY, day, months)
        weekdays = self._values(_WEEKDAY, weekday_part)
        if "L" in weekdays:
            self._refuse("day of week: L needs a weekday before it, as in 5L")
        fields = Fields(
            seconds=self._numbers(_SECOND, second),
            minutes=self._numbers(_MINUTE, minute),
            hours=self._numbers(_HOUR, hour),
            days=frozenset(value for value in days if isinstance(value, int)),
            last_day="L" in day,
            any_day=day in {"*", "?"},
            months=months,
            weekdays=frozenset(value for value in weekdays if isinstance(value, int) and value < 7),
            # The peer reads one digit only, modulo 7: 12L is the last Monday, 9L the last Tuesday.
            last_weekdays=frozenset(int(str(value)[0]) % 7 for value in weekdays) if "L" in weekday else frozenset(),
            nth=nth,
            any_weekday=weekday in {"*", "?"},
        )
        if fields.any_weekday and not fields.last_day and not _some_day_exists(fields):
            self._refuse("names a day that its months never have")
        return fields

    def _split(self) -> list[str]:
        text = _ALIASES.get(self._text, self._text) or "* * * * *"
        if len(text) > _LONGEST_TEXT:
            self._refuse(f"must have at most {_LONGEST_TEXT} characters")
        parts = _SPACES.split(_SPACES.sub("", text, count=1) if _SPACES.match(text) else text)
        if len(parts) > 1 and parts[-1] == "":
            parts.pop()
        if len(parts) > 6:
            self._refuse("must have 5 fields, or 6 with seconds first")
        return ["0", "*", "*", "*", "*", "*"][: 6 - len(parts)] + parts

    def _nth(self, weekday: str) -> tuple[str, int]:
        before, sign, nth = weekday.partition("#")
        if not sign:
            return before, 0
        if set(weekday) & set(",-/"):
            self._refuse("day of week: # goes with a single weekday, not with a list, a range or a step")
        if not re.fullmatch("0*[1-5]", nth):
            self._refuse("day of week: the number after # must be 1 to 5")
        return before, int(nth)

    def _numbers(self, unit: _Unit, text: str) -> tuple[int, ...]:
        return tuple(sorted({value for value in self._values(unit, text) if isinstance(value, int)}))

    def _values(self, unit: _Unit, text: str, months: frozenset[int] = frozenset()) -> list[int | str]:
        text = self._substitute_names(text) if unit.named else text
        if "H" in text:
            self._refuse(f"{unit.name}: H is drawn at random by every reader, so peers would never agree on a time")
        if not re.fullmatch(f"[?*,0-9/{unit.letters}-]+", text):
            self._refuse(f"{unit.name}: {text!r} is not made of numbers, names, * ? , - / or what the field allows")
        text = re.sub("[*?]", f"{unit.low}-{unit.high}", text)
        values = [value for item in text.split(",") for value in self._item(unit, item)]
        if len(months) == 1:
            # Days that the only month does not have are left out first, unless all are: they may be given twice.
            longest = _LONGEST_MONTHS[min(months)]
            values = [value for value in values if isinstance(value, str) or value <= longest] or values
        if not self._repeats and len(set(values)) < len(values):
            self._refuse(f"{unit.name}: a value is given twice")
        return values

    def _substitute_names(self, text: str) -> str:
        def number(match: re.Match[str]) -> str:
            found = _NAMES.get(match[0].lower())
            return found if found is not None else self._refuse(f"{match[0]!r} is not the name of a month or a weekday")

        return re.sub("[A-Za-z]{3}", number, text)

    def _item(self, unit: _Unit, item: str) -> list[int | str]:
        span, *steps = item.split("/")
        if len(steps) > 1:
            self._refuse(f"{unit.name}: {item!r} has two steps")
        if steps and "-" not in span:
            span = f"{span}-{unit.high}"
        if "-" in span:
            return [*self._range(unit, span, _leading_number(steps[0]) if steps else 1)]
        if "L" in span:
            if not re.fullmatch("[0-9]{0,2}L", span):
                self._refuse(f"{unit.name}: {span!r} is not a number and L")
            return [span]
        value = int(span) if span else -1
        if not unit.low <= value <= unit.high:
            self._refuse(f"{unit.name}: {span!r} is outside {unit.low}-{unit.high}")
        return [value % 7 if unit is _WEEKDAY else value]

    def _range(self, unit: _Unit, span: str, step: int | None) -> list[int]:
        low, high = (_leading_number(end) for end in span.split("-")[:2])
        if low is None or high is None or not unit.low <= low <= high <= unit.high:
            self._refuse(f"{unit.name}: {span!r} is not a rising range inside {unit.low}-{unit.high}")
        if not step or step < 0:
            self._refuse(f"{unit.name}: a step must be 1 or more")
        values = list(range(low, high + 1, step))
        # A range up to 7 includes Sunday as 0. The 7 stays too, so that another 7 counts as given twice.
        if unit is _WEEKDAY and values[-1] == 7:
            return values if values[0] == 0 else [0, *values]
        return values


def _leading_number(text: str) -> int | None:
    """Returns the number at the front of a text, as JavaScript's parseInt does. Ignores what follows."""
    digits = re.match("-?[0-9]+", text)
    return int(digits[0]) if digits else None


def _some_day_exists(fields: Fields) -> bool:
    return min(fields.days) <= max(_LONGEST_MONTHS[month] for month in fields.months)
