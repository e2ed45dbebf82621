"""The fingerprint of a stored job, in forty characters. The purge scripts compute the same from what they find."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

# Half of the work would be to write these.
_number = [str(number) for number in range(4096)].__getitem__


def digest(parts: Sequence[bytes]) -> str:
    """Returns SHA-1 over the lengths of all parts and then the parts themselves, so that no two jobs give the same
    bytes."""
    try:
        lengths = ",".join(map(_number, map(len, parts)))
    except IndexError:
        lengths = ",".join(map(str, map(len, parts)))
    return hashlib.sha1(b"%b;%b" % (lengths.encode(), b"".join(parts)), usedforsecurity=False).hexdigest()
