"""The signature of a webhook: HMAC-SHA256 over the time, a dot and the body.

The time is signed too, so that a receiver can refuse an old request that is sent to it again.
"""

from __future__ import annotations

import hashlib
import hmac

TIMESTAMP_HEADER = "Jobwire-Timestamp"
SIGNATURE_HEADER = "Jobwire-Signature"


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """Returns the value of the header Jobwire-Signature.

    >>> signature("a secret of the test", 1700000000, b"{}")[:12]
    'v1=77015228d'
    """
    signed = str(timestamp).encode() + b"." + body
    return "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def is_signed(secret: str, timestamp: str, body: bytes, given: str, *, now: float, tolerance: float = 300) -> bool:
    """Returns True if a request has the signature of this secret and is at most `tolerance` seconds old. For receivers
    that are written in Python."""
    if not (timestamp.isascii() and timestamp.isdigit()) or abs(now - int(timestamp)) > tolerance:
        return False
    return hmac.compare_digest(signature(secret, int(timestamp), body).encode(), given.encode())
