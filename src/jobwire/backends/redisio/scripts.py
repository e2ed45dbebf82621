"""Lua scripts kept as files beside the protocol that owns them.

A script is `<package>/scripts/<name>.lua`. A line `--@include word` stands for `scripts/lib/word.lua`, taken in once
however often it is asked for. Scripts are called by their hash; a server that does not know one is given its text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from redis.exceptions import NoScriptError

from jobwire.backends.redisio.connect import RedisStore
from jobwire.errors import StoreRefused

_INCLUDE = re.compile(r"^--@include (\S+)[ \t]*$", re.MULTILINE)
Argument = str | bytes | int | float


@dataclass(frozen=True, slots=True)
class Script:
    text: str
    sha: str


@lru_cache(maxsize=256)
def load(package: str, name: str) -> Script:
    """The whole text of a script, with what it includes in place."""
    folder = files(package) / "scripts"
    text = _expand(folder / "lib", (folder / f"{name}.lua").read_text("utf-8"), set())
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def _expand(lib: Traversable, text: str, seen: set[str]) -> str:
    def part(match: re.Match[str]) -> str:
        word = match.group(1)
        if word in seen:
            return ""
        seen.add(word)
        return _expand(lib, (lib / f"{word}.lua").read_text("utf-8"), seen).rstrip("\n")

    return _INCLUDE.sub(part, text)


class Scripts:
    """The scripts of one package, run on one store."""

    def __init__(self, store: RedisStore, package: str) -> None:
        self._store = store
        self._package = package

    def command(self, name: str, keys: Sequence[str], args: Sequence[Argument]) -> tuple[Argument, ...]:
        """The command that runs a script, if the server knows it."""
        return ("EVALSHA", load(self._package, name).sha, len(keys), *keys, *args)

    async def run(self, name: str, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Run a script once. A lost reply is reported as StoreUnavailable, and never answered by sending it again."""
        script = load(self._package, name)
        try:
            return await self._store.call_bare("EVALSHA", script.sha, len(keys), *keys, *args)
        except StoreRefused as refused:
            if not isinstance(refused.__cause__, NoScriptError):
                raise
            return await self._store.call_bare("EVAL", script.text, len(keys), *keys, *args)
