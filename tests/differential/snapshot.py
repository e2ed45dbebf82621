"""The whole content of a database, in a form in which two of them can be compared.

Both sides work at the same standing clock, so moments, scores and ids made of moments are compared as they are. What
is left to differ is replaced: tokens of locks, random ids, the text of stacks, the name of the library. JSON that
passes through the server's own encoder (`opts`, `parent`) is parsed, since its keys come in any order; data, results
and progress are compared as bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis import Redis

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PARSED = ("opts", "parent")
_TTL_SLACK_MS = 5000


@dataclass(frozen=True)
class Expiring:
    """A value that will go by itself. The server's clock does not stand still, so the time left is rough."""

    value: Any
    left_ms: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expiring):
            return False
        return self.value == other.value and abs(self.left_ms - other.left_ms) < _TTL_SLACK_MS

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.value!r} for {self.left_ms} ms"


Snapshot = dict[str, Any]


def snapshot(redis: Redis) -> Snapshot:
    """Every key of the database; `decode_responses` must be off."""
    keys = sorted(redis.keys("*"))
    pipeline = redis.pipeline(transaction=False)
    for key in keys:
        pipeline.type(key)
        pipeline.pttl(key)
    about = pipeline.execute()
    for key, kind in zip(keys, about[::2], strict=True):
        _ASK[kind.decode()](pipeline, key)
    values = pipeline.execute()
    found: Snapshot = {}
    for key, kind, left, value in zip(keys, about[::2], about[1::2], values, strict=True):
        name = _text(key)
        shown = _SHOW[kind.decode()](name, value)
        found[_UUID.sub("<uuid>", name)] = Expiring(shown, left) if left >= 0 else shown
    return found


_ASK: Mapping[str, Any] = {
    "hash": lambda pipe, key: pipe.hgetall(key),
    "zset": lambda pipe, key: pipe.zrange(key, 0, -1, withscores=True),
    "list": lambda pipe, key: pipe.lrange(key, 0, -1),
    "set": lambda pipe, key: pipe.smembers(key),
    "string": lambda pipe, key: pipe.get(key),
    "stream": lambda pipe, key: pipe.xrange(key),
}


def _text(raw: bytes) -> str:
    return _UUID.sub("<uuid>", raw.decode("utf-8", "surrogateescape"))


def _hash(_name: str, value: dict[bytes, bytes]) -> dict[str, Any]:
    fields: dict[str, Any] = {_text(field): _text(content) for field, content in value.items()}
    fields.pop("version", None)
    for field in _PARSED:
        if field in fields:
            fields[field] = json.loads(fields[field])
    if "stacktrace" in fields:
        fields["stacktrace"] = f"{len(json.loads(fields['stacktrace']))} stacks"
    return fields


def _string(name: str, value: bytes) -> str:
    return "<token>" if name.endswith(":lock") else _text(value)


_SHOW: Mapping[str, Any] = {
    "hash": _hash,
    "zset": lambda _name, value: [(_text(member), score) for member, score in value],
    "list": lambda _name, value: [_text(item) for item in value],
    "set": lambda _name, value: sorted(_text(item) for item in value),
    "string": _string,
    "stream": lambda _name, value: [" ".join(_text(part) for pair in row.items() for part in pair) for _, row in value],
}
