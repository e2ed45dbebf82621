"""Formats figures and names for people: 12.3k, 45 ms, 4.2 %, long names shortened."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from datetime import datetime

_BIDI_CONTROLS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def count(value: float) -> str:
    """Returns a number of things: whole while it is short, else in three digits.

    >>> [count(n) for n in (0, 950, 1_747, 12_345, 999_950, 4_200_000)]
    ['0', '950', '1,747', '12.3k', '1M', '4.2M']
    """
    if 1000 <= abs(value) < 9999.5:
        return f"{value:,.0f}"
    for size, unit in ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")):
        if abs(value) / size < 999.5 or unit == "G":
            return _three_digits(value / size) + unit
    raise AssertionError


def share(part: float, whole: float) -> str:
    """Returns a part of the whole in per cent. More than nothing is never 0 %, less than everything never 100 %.

    >>> share(42, 1000), share(1, 100_000), share(99_999, 100_000), share(0, 5), share(0, 0)
    ('4.2 %', '< 0.1 %', '> 99.9 %', '0 %', '–')
    """
    if not whole:
        return "–"
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{_trimmed(percent, 0 if percent >= 99.95 else 1)} %"


def duration(milliseconds: float) -> str:
    """
    >>> [duration(ms) for ms in (0.4, 45, 1_234, 95_000, 7_200_000, 200_000_000)]
    ['0.4 ms', '45 ms', '1.23 s', '1.6 min', '2 h', '2.3 d']
    """
    if math.isnan(milliseconds):
        return "–"
    if milliseconds < 999.5:
        return f"{_three_digits(milliseconds)} ms"
    seconds = milliseconds / 1000
    if seconds < 90:
        return f"{_three_digits(seconds)} s"
    if seconds < 90 * 60:
        return f"{_trimmed(seconds / 60, 1)} min"
    if seconds < 36 * 3600:
        return f"{_trimmed(seconds / 3600, 1)} h"
    return f"{_trimmed(seconds / 86400, 1)} d"


def moment(at: datetime) -> str:
    """
    >>> moment(datetime(2026, 5, 12, 14, 5))
    '12 May 14:05'
    """
    return f"{at.day} {at:%b %H:%M}"


def day(at: datetime) -> str:
    """
    >>> day(datetime(2026, 5, 12))
    'Tue 12 May'
    """
    return f"{at:%a} {at.day} {at:%b}"


def plural(number: float, noun: str) -> str:
    """
    >>> plural(1, "job"), plural(12_000, "job"), plural(2, "retry")
    ('1 job', '12k jobs', '2 retries')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{count(number)} {noun[:-1] + 'ies' if noun.endswith('ry') else noun + 's'}"


def listed(names: Sequence[str]) -> str:
    """
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def shorten(text: str, limit: int = 36) -> str:
    """Returns one line without control characters, its middle left out if it is long: names differ at their ends.

    >>> shorten("invoice-" + "x" * 200 + "-eu", 16), shorten("two\\nlines")
    ('invoice-…xxxx-eu', 'two lines')
    """
    seen = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text if c not in _BIDI_CONTROLS)
    line = " ".join(seen.split()) or "(no name)"
    if len(line) <= limit:
        return line
    head = limit // 2
    return f"{line[:head]}…{line[-(limit - head - 1) :]}"


def distinct(texts: Sequence[str]) -> list[str]:
    """Returns the texts, numbered where several became equal by shortening: a chart would draw them as one.

    >>> distinct(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    taken: set[str] = set()
    result: list[str] = []
    for text in texts:
        label, number = text, 1
        while label in taken:
            number += 1
            label = f"{text} ({number})"
        taken.add(label)
        result.append(label)
    return result


def _three_digits(value: float) -> str:
    size = abs(value)
    return _trimmed(value, 0 if size >= 99.95 else 1 if size >= 9.995 else 2)


def _trimmed(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
