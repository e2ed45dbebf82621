"""Who may run a job: the spec's routing, as the peer's claim script settles it where prose and sketch disagree.

No target, or an empty one: everyone. A server: exactly that one, whatever else is asked for. Else every criterion that
is given must pass; the mode only says whether one of a job's capabilities is enough (any) or all are needed (all). A
worker has one stack and one region, so for these both modes are the same. Comparison is exact and case-sensitive.

Jobs that ask for the same workers and carry the same limits share a *route*. A worker learns the routes of its job
type and asks for jobs of those that it matches, so jobs for others cost it nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from jobwire import codec
from jobwire.errors import MalformedPayload

PLAIN = "-"
"""The signature of the route without target and limits."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a worker is, as jobs see it."""

    server: str
    stack: str = ""
    capabilities: frozenset[str] = frozenset()
    region: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """Who may run the jobs of this route, and how many of them.

    >>> route = Route(stack=("node",), capabilities=("gpu", "mail"), mode="all")
    >>> route.admits(Profile("w1", "node", frozenset({"gpu"}))), route.words
    (False, '{"stack":["node"],"capabilities":["gpu","mail"],"mode":"all"}')
    """

    server: str = ""
    stack: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    mode: str = "any"
    max_concurrent: int | None = None
    max_per_minute: int | None = None
    nobody: bool = False
    """The job names a server, but none: the spec's script gives it to no one."""

    def admits(self, worker: Profile) -> bool:
        if self.nobody:
            return False
        if self.server:
            return self.server == worker.server
        if self.stack and worker.stack not in self.stack:
            return False
        if self.region and worker.region not in self.region:
            return False
        if not self.capabilities:
            return True
        asked = frozenset(self.capabilities)
        return bool(asked & worker.capabilities) if self.mode == "any" else asked <= worker.capabilities

    @property
    def words(self) -> str:
        """The route as it stands in the store; scripts write the same."""
        parts: dict[str, Any] = {}
        if self.nobody:
            parts["nobody"] = True
        elif self.server:
            parts["server"] = self.server
        else:
            for name in ("stack", "capabilities", "region"):
                if values := getattr(self, name):
                    parts[name] = values
            if parts and self.mode != "any":
                parts["mode"] = "all"
        if self.max_concurrent is not None:
            parts["maxConcurrent"] = self.max_concurrent
        if self.max_per_minute is not None:
            parts["maxPerMinute"] = self.max_per_minute
        return codec.dumps(parts, field="target").decode() if parts else ""

    @property
    def signature(self) -> str:
        words = self.words
        return hashlib.sha1(words.encode(), usedforsecurity=False).hexdigest()[:16] if words else PLAIN


EVERYONE = Route()


def scope_of(job_type: str, server: str = "") -> str:
    """The part of a key that tells job types, and servers named by jobs, apart.

    >>> scope_of("emails"), scope_of("emails", "w:1")
    ('0::emails', '3:w:1:emails')
    """
    return f"{len(server.encode())}:{server}:{job_type}"


def parse_words(words: bytes | str) -> Route:
    """A route as it stands in the store; one that can't be read admits nobody."""
    if not words:
        return EVERYONE
    try:
        parts = codec.loads(words)
    except MalformedPayload:
        return Route(nobody=True)
    return _route(parts, parts) if isinstance(parts, dict) else Route(nobody=True)


def route_of(job: Mapping[str, Any]) -> Route:
    """The route of a job's data. What has a wrong type counts as absent; the scripts have thrown it out before."""
    target, limits = job.get("target"), job.get("rateLimit")
    if not target and not limits:
        return EVERYONE
    return _route(_mapping(target), _mapping(limits))


def _route(target: Any, limits: Any) -> Route:
    asked, bounds = _mapping(target), _mapping(limits)
    nobody = bool(asked.get("nobody")) or ("server" in asked and asked["server"] is None)
    server = asked.get("server")
    mode = asked.get("mode", "any")
    return Route(
        server=server if isinstance(server, str) else "",
        stack=_texts(asked.get("stack")),
        capabilities=_texts(asked.get("capabilities")),
        region=_texts(asked.get("region")),
        mode="any" if mode == "any" else "all",
        max_concurrent=_limit(bounds.get("maxConcurrent")),
        max_per_minute=_limit(bounds.get("maxPerMinute")),
        nobody=nobody,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(item for item in cast(Sequence[Any], value) if isinstance(item, str))


def _limit(value: Any) -> int | None:
    return int(value // 1) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
