"""The registry of workers: their properties, and which of them are alive.

A worker is alive while its heartbeat key exists: 30 s, renewed every 10 s, and by every claim. The spec's metadata has
no job types, so those of jobwire's workers are stored beside it, in `x:handlers:<type>`. A peer's worker may handle any
type.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from jobwire._version import __version__
from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.job_type import JobType
from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.bridgemq.native.routing import Profile
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.scripts import Argument, Scripts
from jobwire.model import WorkerInfo

BEAT_EVERY = 10.0
HEARTBEAT = timedelta(seconds=30)
"""The time that a heartbeat lasts, also a peer's."""
_NO_KEY = -2
"""Redis's answer to PTTL if there is no such key."""
SESSION = 90.0
"""Seconds that a session lasts without a heartbeat. The entry of a server id is removed with its last session."""


def handlers_key(keys: Keys, job_type: str) -> str:
    return f"{keys.base}x:handlers:{job_type}"


class Registration:
    """Keeps one worker's entry in the registry. Workers with the same server id share an entry."""

    def __init__(self, scripts: Scripts, keys: Keys, profile: Profile, job_type: str, name: str) -> None:
        self._scripts = scripts
        self._keys = keys
        self._profile = profile
        self._name = name
        self._type = job_type
        self._session = uuid.uuid4().hex
        self._registered = False

    async def beat(self) -> None:
        """Writes the entry and renews the heartbeat."""
        profile = self._profile
        about = {
            "serverId": profile.server,
            "stack": profile.stack,
            "region": profile.region,
            "capabilities": sorted(profile.capabilities),
            "pid": os.getpid(),
            "hostname": socket.gethostname(),
            "x": {"client": "jobwire", "version": __version__},
        }
        self._registered = True
        await self._run("beat", round(SESSION * 1000), self._name, codec.rewritten(about)[:-1])

    async def leave(self) -> None:
        if not self._registered:
            return
        self._registered = False
        await self._run("leave")

    async def _run(self, action: str, *args: Argument) -> None:
        about: list[Argument] = [action, self._profile.server, self._type, self._session, *args]
        await self._scripts.run("register", [self._keys.base], about)


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A worker that is alive and may handle the type."""

    profile: Profile
    info: WorkerInfo


async def live_workers(kind: JobType) -> Sequence[LiveWorker]:
    """Returns the workers with a heartbeat: jobwire's that registered for the type, and all of peers."""
    return (await workers_by_type(kind.store, kind.keys, [kind.name]))[kind.name]


async def workers_by_type(store: RedisStore, keys: Keys, types: Sequence[str]) -> Mapping[str, Sequence[LiveWorker]]:
    """Returns the live workers of several types, in two round trips."""
    servers = sorted(raw.decode(errors="replace") for raw in await store.call("SMEMBERS", keys.workers))
    if not servers:
        return dict.fromkeys(types, ())
    about_servers = [
        command for one in servers for command in (("PTTL", keys.heartbeat(one)), ("MGET", keys.worker(one)))
    ]
    answers = await store.calls([*about_servers, *(("HGETALL", handlers_key(keys, one)) for one in types)])
    handlers = answers[len(about_servers) :]
    alive: dict[str, _Alive] = {}
    for server, left, [raw] in zip(
        servers, answers[: len(about_servers) : 2], answers[1 : len(about_servers) : 2], strict=True
    ):
        about = codec.parse(raw) if raw else None
        if left != _NO_KEY and about is not None:
            seen_at = datetime.now(UTC) - HEARTBEAT + timedelta(milliseconds=left) if left >= 0 else None
            alive[server] = _Alive(about, seen_at)
    return {one: _handling(alive, registered) for one, registered in zip(types, handlers, strict=True)}


@dataclass(frozen=True, slots=True)
class _Alive:
    """The entry of a worker, and the time of its last heartbeat, if that expires."""

    about: codec.Document
    seen_at: datetime | None


def _handling(alive: Mapping[str, _Alive], registered: Any) -> list[LiveWorker]:
    names = {server.decode(errors="replace"): name.decode(errors="replace") for server, name in _pairs(registered)}
    found: list[LiveWorker] = []
    for server, one in alive.items():
        about, own = one.about, codec.mapping(one.about.get("x"))
        if server not in names and own.get("client") == "jobwire":
            continue
        client = f"{_text(own.get('client'))} {_text(own.get('version'))}".strip()
        info = WorkerInfo(names.get(server) or server, _text(about.get("hostname")), client, one.seen_at, raw=about)
        found.append(LiveWorker(_profile(server, about), info))
    return found


def _profile(server: str, about: codec.Document) -> Profile:
    capabilities = about.get("capabilities")
    listed = cast(Sequence[Any], capabilities) if isinstance(capabilities, list) else ()
    can = frozenset(item for item in listed if isinstance(item, str))
    return Profile(server, _text(about.get("stack")), can, _text(about.get("region")))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _pairs(reply: Any) -> Sequence[tuple[bytes, bytes]]:
    """Returns the pairs of a reply to HGETALL: the driver returns a dict for one command and a list in a pipeline."""
    if isinstance(reply, dict):
        return list(cast(dict[bytes, bytes], reply).items())
    return list(zip(reply[::2], reply[1::2], strict=True))
