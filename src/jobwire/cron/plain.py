"""The plain rule: a pattern occurs each time the clocks show a matching time, so twice in a repeated hour and never in
a skipped one.

It is used where the peer's search gives up or goes back in time, which happens at clock changes of half an hour.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo

from jobwire.cron.calendar import DAY, first_match, last_match
from jobwire.cron.fields import Fields
from jobwire.cron.zones import offset_at


def plain_next(fields: Fields, zone: tzinfo, start: int) -> int | None:
    """Returns the first instant at or after ``start``, in seconds, at which the zone's clocks show a match."""
    return _search(first_match, 1, fields, zone, start)


def plain_latest(fields: Fields, zone: tzinfo, start: int) -> int | None:
    """Returns the last instant at or before ``start``, in seconds, at which the zone's clocks show a match."""
    return _search(last_match, -1, fields, zone, start)


def _search(
    match: Callable[[Fields, int], int | None], sign: int, fields: Fields, zone: tzinfo, start: int
) -> int | None:
    at = start
    while True:
        offset = offset_at(zone, at)
        wall = match(fields, at + offset)
        if wall is None:
            return None
        found = wall - offset
        edge = _last_with_same_offset(zone, at, found, sign)
        if edge == found:
            return found
        at = edge + sign


def _last_with_same_offset(zone: tzinfo, start: int, end: int, sign: int) -> int:
    """Returns the last instant from ``start`` towards ``end`` that has the same offset."""
    offset = offset_at(zone, start)
    reached = start
    while reached != end:
        beyond = reached + sign * min(DAY, abs(end - reached))
        if offset_at(zone, beyond) != offset:
            while abs(beyond - reached) > 1:
                middle = (reached + beyond) // 2
                if offset_at(zone, middle) == offset:
                    reached = middle
                else:
                    beyond = middle
            return reached
        reached = beyond
    return end
