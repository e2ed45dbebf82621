"""The fingerprint of a BullMQ job: over its container, its hash, and its side keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobwire.pipeline.stores.redisio.fingerprint import digest

Sides = Mapping[bytes, Sequence[bytes]]
"""The non-empty ones of a job's side keys, by their endings in the order of `containers.SIDES`. Lists and sorted sets
are as stored, sets are sorted by bytes; of a hash the sorted fields come first, then their values."""


def fingerprint(container: str, fields: Mapping[bytes, bytes], sides: Sides) -> str:
    """Returns the fingerprint. `scripts/purge.lua` computes the same."""
    names = sorted(fields)
    parts = [container.encode(), b"%d" % len(names), *names, *map(fields.__getitem__, names)]
    for ending, items in sides.items():
        parts += (ending, b"%d" % len(items), *items)
    return digest(parts)


def in_order(ending: bytes, found: Sequence[bytes]) -> Sequence[bytes]:
    """Returns a side key's content in the order that the fingerprint uses."""
    if ending == b":dependencies":
        return sorted(found)
    if ending in (b":processed", b":failed"):
        fields = dict(zip(found[::2], found[1::2], strict=True))
        return [*sorted(fields), *(fields[name] for name in sorted(fields))]
    return found
