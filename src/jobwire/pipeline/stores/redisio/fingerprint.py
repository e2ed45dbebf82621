"""What a stored job looks like, in forty characters; the purge scripts compute the same from what they find."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

# Half of the work would be to write these.
_number = [str(number) for number in range(4096)].__getitem__


def digest(parts: Sequence[bytes]) -> str:
    """SHA-1 over the lengths of all parts and then the parts themselves, so no two jobs run into each other."""
    try:
        lengths = ",".join(map(_number, map(len, parts)))
    except IndexError:
        lengths = ",".join(map(str, map(len, parts)))
    return hashlib.sha1(b"%b;%b" % (lengths.encode(), b"".join(parts)), usedforsecurity=False).hexdigest()
