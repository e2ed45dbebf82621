"""Ids that a second attempt finds again: what a job is called in a store that it is loaded or moved into."""

from __future__ import annotations

import hashlib
import re
import uuid

_HEX_24 = re.compile("[0-9a-f]{24}")
_LONGEST = 200


def native_id(protocol: str, given: str) -> str:
    """An id that the protocol accepts: the given one if it does, else one derived from it, always the same.

    >>> native_id("bullmq", "order-17"), native_id("bullmq", "17")
    ('order-17', 'jw-04fb747d3abb68c76697f013')
    >>> native_id("pgboss", "order-17")
    'c4da1c9b-1a20-5db2-94f5-9c3c91012b1c'
    """
    match protocol:
        case "pgboss":
            try:
                return str(uuid.UUID(given))
            except ValueError:
                return str(uuid.uuid5(uuid.NAMESPACE_OID, given))
        case "monque":
            return given if _HEX_24.fullmatch(given) else digest(given)
        case "bullmq":
            # Node refuses ids that are whole numbers, which are the queue's own, and `:`, which parts its keys.
            plain = not given.isdigit() and ":" not in given and 0 < len(given) <= _LONGEST
            return given if plain else f"jw-{digest(given)}"
        case _:
            plain = ":" not in given and 0 < len(given) <= _LONGEST and given.isprintable()
            return given if plain else f"jw-{digest(given)}"


def digest(*parts: str) -> str:
    """24 hexadecimal digits that stand for the parts."""
    hashed = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(encoded))
        hashed.update(encoded)
    return hashed.hexdigest()[:24]
