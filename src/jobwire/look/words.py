"""Times and durations in words."""

from __future__ import annotations

from datetime import UTC, datetime


def ago(at: datetime | None, now: datetime | None = None) -> str:
    """Returns the distance of a moment from now, in one unit.

    >>> noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    >>> ago(datetime(2030, 1, 1, 11, 58, tzinfo=UTC), noon), ago(datetime(2030, 1, 1, 15, tzinfo=UTC), noon)
    ('2 min ago', 'in 3 h')
    """
    if at is None:
        return ""
    away = ((now or datetime.now(UTC)) - at).total_seconds()
    size = abs(away)
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        if size >= length:
            span = f"{size / length:.0f} {unit}"
            return f"{span} ago" if away > 0 else f"in {span}"
    return "now"


def spoken(seconds: float) -> str:
    """Returns a duration in one unit.

    >>> spoken(0.01), spoken(0.25), spoken(42), spoken(5400), spoken(200_000)
    ('10 ms', '0.2 s', '42 s', '90 min', '56 h')
    """
    for unit, length, least in (("d", 86_400, 3 * 86_400), ("h", 3600, 3 * 3600), ("min", 60, 180)):
        if seconds >= least:
            return f"{seconds / length:.0f} {unit}"
    if 0 < seconds < 0.1:
        return f"{max(1, round(seconds * 1000))} ms"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"


def measured(seconds: float) -> str:
    """Returns a measured duration in one unit, with two digits or more.

    >>> [measured(one) for one in (0.0004, 0.085, 1.234, 42, 95, 9000, 200_000)]
    ['0.4 ms', '85 ms', '1.2 s', '42 s', '1.6 min', '2.5 h', '2.3 d']
    """
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms" if 0 < seconds < 0.00095 else f"{seconds * 1000:.0f} ms"
    for unit, length, least in (("d", 86_400, 129_600), ("h", 3600, 5400), ("min", 60, 90)):
        if seconds >= least:
            return f"{seconds / length:.1f} {unit}".replace(".0 ", " ")
    return f"{seconds:.1f} s".replace(".0 s", " s") if seconds < 9.95 else f"{seconds:.0f} s"
