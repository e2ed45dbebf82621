"""Loads and runs Lua scripts, which are kept as files beside the protocol that owns them.

A script is `<package>/scripts/<duty>/<name>.lua`; its name alone identifies it. A line `--@include word` is replaced by
`scripts/lib/word.lua`, or by `redisio/lua/word.lua` if the protocol has no such file, once per script, however often it
is included. Scripts are called by their hash. A server that does not have one yet is sent its text.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from redis.exceptions import NoScriptError, ResponseError

from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.errors import failure_of
from jobwire.errors import StoreRefused

_INCLUDE = re.compile(r"^--@include (\S+)[ \t]*$", re.MULTILINE)
Argument = str | bytes | int | float
_CALLS_PER_ROUND_TRIP = 100
_NO_KEY = ":"
"""Makes the name of a key, or of the keys of a queue, one that no protocol writes."""


@dataclass(frozen=True, slots=True)
class Script:
    text: str
    sha: str


@lru_cache(maxsize=256)
def load(package: str, name: str) -> Script:
    """Returns a script with its includes expanded."""
    return script_of(_sources(package)[name].read_text("utf-8"), package)


def script_of(text: str, package: str) -> Script:
    """Returns a script of this text, which may include what lies in the package's `scripts/lib`."""
    text = _expand(files(package) / "scripts" / "lib", text, set())
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


@lru_cache(maxsize=8)
def _sources(package: str) -> dict[str, Traversable]:
    """Returns the files of a package's scripts by name, without the shared ones in `lib`."""
    duties = [folder for folder in (files(package) / "scripts").iterdir() if folder.is_dir() and folder.name != "lib"]
    return {file.name.removesuffix(".lua"): file for folder in duties for file in folder.iterdir()}


def _expand(lib: Traversable, text: str, seen: set[str]) -> str:
    def part(match: re.Match[str]) -> str:
        word = match.group(1)
        if word in seen:
            return ""
        seen.add(word)
        own = lib / f"{word}.lua"
        source = own if own.is_file() else files("jobwire.backends.redisio") / "lua" / f"{word}.lua"
        return _expand(lib, source.read_text("utf-8"), seen).rstrip("\n")

    return _INCLUDE.sub(part, text)


def declared_keys(keys: Sequence[str], *, cluster: bool) -> tuple[Argument, ...]:
    """Returns the number of keys, and the keys. On a cluster the last is one more than the script uses.

    While a slot moves from one node to another, some of its keys are on each. A node refuses a command with several
    keys that it does not have all (TRYAGAIN). With one key it would run the script, and the script would take all the
    keys it does not find there for keys that do not exist. No node has the last key. So scripts wait until the slot has
    moved.
    """
    return (len(keys) + 1, *keys, keys[0] + _NO_KEY) if cluster else (len(keys), *keys)


@dataclass(frozen=True, slots=True, eq=False)
class _PendingCall:
    """A call that waits to be sent together with others."""

    script: Script
    rest: tuple[Any, ...]
    answer: asyncio.Future[Any]


class Scripts:
    """The scripts of one package, run on one store."""

    def __init__(self, store: RedisStore, package: str) -> None:
        self._store = store
        self.clock = store.clock
        self._package = package
        self._pending: list[_PendingCall] = []
        self._sending: asyncio.Task[None] | None = None

    def command(self, name: str, keys: Sequence[str], args: Sequence[Argument]) -> tuple[Argument, ...]:
        """Returns the command that runs a script by its hash. The server must have it already."""
        return ("EVALSHA", load(self._package, name).sha, *self._declared(keys), *args)

    def _declared(self, keys: Sequence[str]) -> tuple[Argument, ...]:
        return declared_keys(keys, cluster=bool(self._store.cluster))

    async def run(self, name: str, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Runs a script once. Raises StoreUnavailable if the reply is lost, and never sends the script again by
        itself."""
        script, declared = load(self._package, name), self._declared(keys)
        try:
            return await self._store.call_bare("EVALSHA", script.sha, *declared, *args)
        except StoreRefused as refused:
            if not isinstance(refused.__cause__, NoScriptError):
                raise
            return await self._store.call_bare("EVAL", script.text, *declared, *args)

    async def run_together(self, name: str, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Runs a script as `run` does, but in one round trip with others that were called while the last one was in
        progress. Meant for calls that come in bursts. The scripts still run one by one, each with its own reply."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending.append(_PendingCall(load(self._package, name), (*self._declared(keys), *args), answer))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_pending())
        return await answer

    async def _send_pending(self) -> None:
        try:
            while self._pending:
                batch, self._pending = self._pending[:_CALLS_PER_ROUND_TRIP], self._pending[_CALLS_PER_ROUND_TRIP:]
                # Leave out calls that were cancelled before they were sent.
                batch = [one for one in batch if not one.answer.done()]
                try:
                    unknown = await self._answer(batch, by_hash=True)
                    if unknown:
                        await self._answer(unknown, by_hash=False)
                except Exception as error:  # the callers raise it
                    for one in batch:
                        if not one.answer.done():
                            one.answer.set_exception(error)
                except BaseException:
                    self._pending += batch
                    raise
        finally:
            self._sending = None
            left, self._pending = self._pending, []
            for one in left:  # only left over if the event loop is being closed
                one.answer.cancel()

    async def _answer(self, batch: Sequence[_PendingCall], by_hash: bool) -> list[_PendingCall]:
        """Runs the calls and sets their results. Returns those whose script the server does not have."""
        unknown: list[_PendingCall] = []
        if by_hash:
            commands = [("EVALSHA", one.script.sha, *one.rest) for one in batch]
        else:
            commands = [("EVAL", one.script.text, *one.rest) for one in batch]
        for one, reply in zip(batch, await self._store.calls_bare(commands), strict=True):
            if by_hash and isinstance(reply, NoScriptError):
                unknown.append(one)
            elif one.answer.done():
                continue
            elif isinstance(reply, ResponseError):
                failure = failure_of(reply, self._store.where)
                failure.__cause__ = reply
                one.answer.set_exception(failure)
            else:
                one.answer.set_result(reply)
        return unknown
