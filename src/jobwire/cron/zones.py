"""Time zones as the peers name them, and the offsets they have at an instant."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from jobwire.errors import InvalidOption

# Node's date library accepts UTC+3 and UTC+5:30, and Node itself +05, +0530 and +05:30, but neither accepts +5.
_FIXED: Final = re.compile(r"(?:UTC([+-][0-9]{1,2})(?::([0-9]{2}))?|([+-][0-9]{2})(?::?([0-9]{2}))?)", re.IGNORECASE)
_SECOND: Final = timedelta(seconds=1)
_MACHINE_ZONES: Final = frozenset({"localtime", "local", "system", "posixrules", "factory"})


def zone_of(tz: str | tzinfo) -> tzinfo:
    return tz if isinstance(tz, tzinfo) else _named(tz)


def offset_at(zone: tzinfo, at: int) -> int:
    """Returns by how many seconds the zone is ahead of UTC at an instant, given in seconds since 1970."""
    offset = datetime.fromtimestamp(at, zone).utcoffset()
    return offset // _SECOND if offset is not None else 0


@lru_cache(maxsize=256)
def _named(name: str) -> tzinfo:
    if name.lower() in {"utc", "gmt"}:
        return UTC
    if fixed := _FIXED.fullmatch(name):
        hours, minutes = fixed[1] or fixed[3], int(fixed[2] or fixed[4] or 0)
        ahead = timedelta(hours=abs(int(hours)), minutes=minutes)
        if ahead < timedelta(days=1):
            return timezone(-ahead if hours.startswith("-") else ahead)
    elif name.lower() not in _MACHINE_ZONES:
        found = _iana(name) or _iana(_spelled().get(name.lower(), ""))
        if found is not None:
            return found
    raise InvalidOption("tz", name, "must be an IANA time zone such as Europe/Berlin, or UTC")


def _iana(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, LookupError, OSError):
        return None


@lru_cache(maxsize=1)
def _spelled() -> dict[str, str]:
    # Node accepts zone names in any case, so a stored schedule may have them in any case.
    return {name.lower(): name for name in available_timezones()}
