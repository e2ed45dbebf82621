"""Answers of npm cron-parser, as `tests/interop/node/cron_vectors.mjs` writes them, and their comparison with ours.

Each file brings the time zones along as its Node knew them, so a difference of tzdata releases can't be taken for a
difference of the search, and no vector has to be left out.
"""

from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from jobwire.cron import Cron
from jobwire.errors import InvalidOption


@dataclass(frozen=True)
class Vector:
    pattern: str
    zone: ZoneInfo
    from_ms: int
    refused: bool
    next_s: tuple[int | None, ...]
    """Three times in a row; shorter where the peer threw (None) or went back in time."""
    latest_s: int | None


def read_vectors(text: str) -> list[Vector]:
    zones: dict[str, ZoneInfo] = {}
    vectors: list[Vector] = []
    for line in text.strip("\n").split("\n"):  # not splitlines(): patterns hold odd white space
        entry = json.loads(line)
        if "zone" in entry:
            zones[entry["zone"]] = _zone(entry)
        else:
            nexts = tuple(None if answer == "!" else answer for answer in entry.get("n", ()))
            latest = None if entry.get("l") == "!" else entry.get("l")
            vectors.append(Vector(entry["p"], zones[entry["z"]], entry["f"], "r" in entry, nexts, latest))
    return vectors


def difference(vector: Vector) -> str | None:
    """What we answer otherwise than the peer, in words; None if nothing."""
    told = f"{vector.pattern!r} in {vector.zone.key} from {vector.from_ms}"
    try:
        cron = Cron.parse(vector.pattern)
    except InvalidOption as error:
        if vector.refused or vector.next_s == (None,):
            return None
        return f"{told}: refused here, {error.rule}; the peer answers {vector.next_s}"
    if vector.refused:
        return f"{told}: refused by the peer, accepted here"
    start = vector.from_ms
    for peer in vector.next_s:
        ours = cron.next_ms(start, vector.zone)
        if peer is None or peer * 1000 <= start:  # the peer is lost: ours need only be sound
            if ours <= start:
                return f"{told}: ours, {ours}, is not after {start}"
        elif ours != peer * 1000:
            return f"{told}: after {start} ours is {ours / 1000}, the peer's {peer}"
        start = ours
    ours = cron.latest_ms(vector.from_ms, vector.zone)
    if ours > vector.from_ms:
        return f"{told}: our latest, {ours / 1000}, is in the future"
    if vector.latest_s is not None and vector.latest_s * 1000 <= vector.from_ms and ours != vector.latest_s * 1000:
        return f"{told}: our latest is {ours / 1000}, the peer's {vector.latest_s}"
    return None


def _zone(entry: dict[str, Any]) -> ZoneInfo:
    """A zone from a list of its changes, by way of the binary format of zone files (RFC 8536)."""
    offsets = sorted({entry["offset"], *(offset for _, offset in entry["changes"])})
    names = b"-00\0"

    def header(changes: int, types: int, characters: int) -> bytes:
        return struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, changes, types, characters)

    # Before the first change the zone's first type holds, so that one comes first.
    offsets.remove(entry["offset"])
    offsets.insert(0, entry["offset"])
    types = b"".join(struct.pack(">lbB", offset * 60, 0, 0) for offset in offsets)
    changes = entry["changes"]
    data = struct.pack(f">{len(changes)}q", *(at for at, _ in changes))
    data += bytes(offsets.index(offset) for _, offset in changes)
    blocks = (
        header(0, 1, 4) + types[:6] + names + header(len(changes), len(offsets), 4) + data + types + names + b"\n\n"
    )
    return ZoneInfo.from_file(io.BytesIO(blocks), key=entry["zone"])
