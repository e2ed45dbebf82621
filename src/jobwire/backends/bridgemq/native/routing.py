"""The spec's routing: which workers may run a job. Where the spec's text and sketch disagree, the peer's claim script
decides.

A job without a target, or with an empty one, may run on every worker. A job with a server may run only there, whatever
else its target has. Otherwise the worker must meet every criterion of the target. With mode `any` it needs one of the
capabilities, with `all` it needs all of them. A worker has one stack and one region, so for these both modes are the
same. Comparison is exact and case-sensitive.

Jobs with the same target and the same limits share a *route*. A worker reads the routes of its job type and claims only
jobs of those that admit it, so jobs for others cost it nothing.
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
    """The properties of a worker that targets are compared with."""

    server: str
    stack: str = ""
    capabilities: frozenset[str] = frozenset()
    region: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """A target and limits: which workers may run the jobs of this route, and how many at once and per minute.

    >>> route = Route(stack=("node",), capabilities=("gpu", "mail"), mode="all")
    >>> route.admits(Profile("w1", "node", frozenset({"gpu"}))), route.definition
    (False, '{"stack":["node"],"capabilities":["gpu","mail"],"mode":"all"}')
    """

    server: str = ""
    stack: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    mode: str = "any"
    max_concurrent: int | None = None
    max_per_minute: int | None = None
    admits_none: bool = False
    """True if the server of the target is null: the spec's script gives such a job to no worker."""

    def admits(self, worker: Profile) -> bool:
        if self.admits_none:
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
    def definition(self) -> str:
        """The route as JSON, as it is stored. Scripts write the same text."""
        parts: dict[str, Any] = {}
        if self.admits_none:
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
        definition = self.definition
        return hashlib.sha1(definition.encode(), usedforsecurity=False).hexdigest()[:16] if definition else PLAIN


EVERYONE = Route()


def scope_of(job_type: str, server: str = "") -> str:
    """Returns the part of a key that stands for a job type, and a server if jobs have one as their target.

    >>> scope_of("emails"), scope_of("emails", "w:1")
    ('0::emails', '3:w:1:emails')
    """
    return f"{len(server.encode())}:{server}:{job_type}"


def parse_definition(definition: bytes | str) -> Route:
    """Returns a stored route. One that can't be read admits no worker."""
    if not definition:
        return EVERYONE
    try:
        parts = codec.loads(definition)
    except MalformedPayload:
        return Route(admits_none=True)
    return _route(parts, parts) if isinstance(parts, dict) else Route(admits_none=True)


def route_of(job: Mapping[str, Any]) -> Route:
    """Returns the route of a job's data. Values of a wrong type count as absent: the scripts discard such jobs."""
    target, limits = job.get("target"), job.get("rateLimit")
    if not target and not limits:
        return EVERYONE
    return _route(_mapping(target), _mapping(limits))


def _route(target: Any, limits: Any) -> Route:
    asked, bounds = _mapping(target), _mapping(limits)
    admits_none = bool(asked.get("nobody")) or ("server" in asked and asked["server"] is None)
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
        admits_none=admits_none,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(item for item in cast(Sequence[Any], value) if isinstance(item, str))


def _limit(value: Any) -> int | None:
    return int(value // 1) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
