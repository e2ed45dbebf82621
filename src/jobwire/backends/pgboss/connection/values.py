"""Writes values of statements as the text that PostgreSQL reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from jobwire.backends.pgboss.connection.pipelined import Value


def text(value: str | None) -> Value:
    return None if value is None else value.encode()


def number(value: float | None) -> Value:
    return None if value is None else str(value).encode()


def flag(value: bool | None) -> Value:
    return None if value is None else (b"true" if value else b"false")


def moment(value: datetime | None) -> Value:
    return None if value is None else value.isoformat().encode()


def plain_list(values: Sequence[object]) -> bytes:
    """Returns an array of ids, numbers or flags: values without commas, quotes and braces."""
    return ("{" + ",".join("NULL" if value is None else str(value) for value in values) + "}").encode()


def text_list(values: Sequence[str | None]) -> bytes:
    """Returns an array of any texts."""
    return ("{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}").encode()


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
