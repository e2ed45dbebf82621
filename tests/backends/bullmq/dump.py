"""What a BullMQ queue looks like in the store, in a form in which two runs can be compared.

Clocks, random ids and stack traces differ between any two runs, so they are replaced by words; JSON fields are
parsed, because the order of their keys carries nothing.
"""

from __future__ import annotations

import json
import re
from typing import Any

from redis.asyncio import Redis

_MS = re.compile(r"(?<!\d)1[6-9]\d{11}(?:\.\d+)?(?!\d)")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_JSON_FIELDS = frozenset({"data", "opts", "parent", "progress", "returnvalue", "stacktrace"})
_DUE_SCALE = 4096


async def dump(redis: Redis, prefix: str, *, keep_events: bool = True) -> dict[str, Any]:
    """Every key under the prefix, as `queue:word -> value`."""
    found: dict[str, Any] = {}
    keys = sorted([raw.decode() async for raw in redis.scan_iter(match=f"{prefix}:*", count=100_000)])
    async with redis.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.type(key).pttl(key)
        about = await pipeline.execute()
    for key, kind, left in zip(keys, about[::2], about[1::2], strict=True):
        word = key.removeprefix(f"{prefix}:")
        if kind == b"stream" and not keep_events:
            continue
        value = await _READERS[kind.decode()](redis, key)
        if left > 0:
            value = {"expires": True, "value": value}
        found[_free_name(_words(word, prefix), found)] = _tidy(value, prefix)
    return found


def _free_name(word: str, taken: dict[str, Any]) -> str:
    """Scheduled jobs differ only by their moment, which has become a word: they are told apart by their order."""
    name, number = word, 1
    while name in taken:
        number += 1
        name = f"{word}#{number}"
    return name


async def _hash(redis: Redis, key: str) -> dict[str, Any]:
    fields = {name.decode(): value.decode() for name, value in (await redis.hgetall(key)).items()}
    fields.pop("version", None)
    for name in _JSON_FIELDS & fields.keys():
        fields[name] = json.loads(fields[name])
    if "stacktrace" in fields:
        fields["stacktrace"] = len(fields["stacktrace"])
    if "offset" in fields:
        fields["offset"] = "<offset>"
    if "rjk" in fields:
        _forget_delay(fields)
        _forget_delay(fields["opts"])
    return fields


def _forget_delay(fields: dict[str, Any]) -> None:
    """How far off a scheduled moment was depends on the clock; whether it was ahead does not."""
    if fields.get("delay", 0) not in (0, "0"):
        fields["delay"] = "<delay>"


async def _sorted_set(redis: Redis, key: str) -> list[list[Any]]:
    due = key.endswith(":delayed")
    rows = await redis.zrange(key, 0, -1, withscores=True)
    return [[member.decode(), score // _DUE_SCALE if due else score] for member, score in rows]


async def _list(redis: Redis, key: str) -> list[str]:
    return [item.decode() for item in await redis.lrange(key, 0, -1)]


async def _set(redis: Redis, key: str) -> list[str]:
    return sorted(item.decode() for item in await redis.smembers(key))


async def _string(redis: Redis, key: str) -> str:
    return (await redis.get(key)).decode()


async def _stream(redis: Redis, key: str) -> list[list[str]]:
    rows = await redis.xrange(key)
    return [[part.decode() for pair in fields.items() for part in pair] for _, fields in rows]


_READERS = {"hash": _hash, "zset": _sorted_set, "list": _list, "set": _set, "string": _string, "stream": _stream}


def _tidy(value: Any, prefix: str) -> Any:
    if isinstance(value, dict):
        return {_words(name, prefix): _tidy(item, prefix) for name, item in value.items()}
    if isinstance(value, list):
        return [_tidy(item, prefix) for item in value]
    if isinstance(value, str):
        return _words(value, prefix)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 1.6e12 < value < 2e12:
        return "<ms>"
    return value


def _words(text: str, prefix: str) -> str:
    return _UUID.sub("<uuid>", _MS.sub("<ms>", text.replace(f"{prefix}:", "P:")))
