"""Errors of PostgreSQL as jobwire's: StoreUnavailable if the same call may succeed later, else StoreRefused.

StoreUnavailable: no connection, a server that starts, stops or fails over (classes 08 and 57, 25006), one that is
short of something (class 53), a deadlock or a lock not granted (40, 55P03). Every other error of the server is
StoreRefused. Both carry the server's code as `sqlstate`, since some callers act on a particular code.

After a failed login the driver has the server's message, but no code. A message about a wrong password, a missing
database or a missing permission means StoreRefused, if PostgreSQL or PgBouncer write it in English. In another language
it is taken for StoreUnavailable: that costs attempts to connect, and nothing is lost.
"""

from __future__ import annotations

import re

from jobwire.errors import JobwireError, StoreRefused, StoreUnavailable
from jobwire.redact import redact

UNIQUE_VIOLATION = "23505"
FOREIGN_KEY_VIOLATION = "23503"
CHECK_VIOLATION = "23514"
UNDEFINED_TABLE = "42P01"
DUPLICATE_OBJECT = ("42P06", "42P07", "42710", "23505", "42723")
INSUFFICIENT_PRIVILEGE = "42501"
TAKES_NO_WRITES = ("25006", "53100")
"""The codes of a standby or a read-only transaction, and of a full disk."""

_TRANSIENT_CLASSES = ("08", "53", "57", "40")
_TRANSIENT_CODES = ("25006", "55P03")
_REFUSED_AT_LOGIN = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|is not permitted to log in|permission denied for"
    r'|(?:database|role) ".*" does not exist|no such (?:user|database)|does not support SSL, but SSL was required'
)


class Unreachable(StoreUnavailable):
    """PostgreSQL can't be reached."""

    sqlstate: str = ""


class Refused(StoreRefused):
    """PostgreSQL refused a statement."""

    sqlstate: str = ""


def failure(where: str, words: str, sqlstate: str = "") -> JobwireError:
    """Returns the jobwire error for a message of the server, or for a lost connection if there is no message."""
    words = " ".join(redact(words).split()) or "the connection was lost"
    if sqlstate:
        transient = sqlstate.startswith(_TRANSIENT_CLASSES) or sqlstate in _TRANSIENT_CODES
    else:
        transient = _REFUSED_AT_LOGIN.search(words) is None
    kind, verb = (Unreachable, "is unavailable") if transient else (Refused, "refused")
    error = kind(f"{where} {verb}: {words}")
    error.sqlstate = sqlstate
    return error


def sqlstate_of(error: BaseException) -> str:
    """Returns the server's code of an error, or an empty text if it has none."""
    return getattr(error, "sqlstate", None) or ""
