"""Data of BullMQ's queues that is not as it should be, beside the settings of the server."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from jobwire.backends.bullmq.connection import Server
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.redisio.diagnose import RedisChecks
from jobwire.backends.redisio.each_node import in_steps, missing, some_keys
from jobwire.boundary import Check, Finding, FindingKind, Severity, Thresholds
from jobwire.boundary.finding_kinds import LOCKS, MIXED_VERSIONS, NOT_EXAMINED, ORPHANS, UNTESTED_PEER
from jobwire.counted import counted, few
from jobwire.errors import StoreRefused

EVENTS = FindingKind(
    "events-growth",
    Severity.WARNING,
    "a stream of events grows",
    "it fills the server's memory, and each reader that starts at its beginning is slow",
    "jobwire events QUEUE --trim 10000, and open the queue with events_max_len=10_000",
)
TESTED = (5, 6)
"""The major versions of BullMQ that jobwire shares queues with."""
_SAMPLE = 100
_ACTIVE = 1000
_KEYS_LOOKED_AT = 50_000
_MARKER = b"0:"
_GLOB = re.compile(r"([\\*?\[\]])")
_LISTS = ("wait", "paused", "active")
_SETS = ("prioritized", "delayed", "waiting_children", "completed", "failed")


class _Orphan(NamedTuple):
    """A lock or a unique key whose job is gone, or does not run."""

    keys: Keys
    key: str
    job_id: str
    is_lock: bool

    @property
    def words(self) -> str:
        return f"{self.key} (job {self.job_id} is gone or does not run)"


class BullDiagnosis:
    """Implements Diagnosis."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._redis = RedisChecks(server.store)

    async def server(self) -> str:
        return await self._redis.server()

    async def now(self) -> float:
        return await self._redis.now()

    async def stalled(self, queue: str, limit: int) -> Sequence[str]:
        """Returns active jobs without a lock. They are looked at twice, since a job may end between two reads."""
        keys, store = self._server.keys(queue), self._server.store
        ids = [raw.decode(errors="replace") for raw in await store.call("LRANGE", keys.active, -_ACTIVE, -1)]
        for _ in range(2):
            lost = await missing(store, [keys.lock(job_id) for job_id in ids])
            ids = [job_id for job_id, gone in zip(ids, lost, strict=True) if gone][:limit]
            listed = await in_steps(store, [("LPOS", keys.active, job_id) for job_id in ids])
            ids = [job_id for job_id, position in zip(ids, listed, strict=True) if position is not None]
        return ids

    def checks(self, queues: Sequence[str], thresholds: Thresholds) -> Sequence[Check]:
        async def events() -> Sequence[Finding]:
            return await self._events(queues, thresholds.events)

        async def versions() -> Sequence[Finding]:
            return await self._versions(queues)

        async def orphans() -> Sequence[Finding]:
            found: list[Finding] = []
            unread: list[StoreRefused] = []
            for queue in queues:
                try:
                    found += await self._orphans(queue)
                except StoreRefused as refused:  # data of another program in the place of one queue hides no other
                    unread.append(refused)
                    found.append(NOT_EXAMINED.found(f"orphaned jobs: {refused}", queue=queue))
            if unread and len(unread) == len(queues):
                raise unread[0]
            return found

        async def locks() -> Sequence[Finding]:
            return await self._locks(queues)

        return [
            *self._redis.checks(thresholds),
            Check("events", events),
            Check("versions of peers", versions),
            Check("orphaned jobs", orphans),
            Check("locks", locks),
        ]

    async def fix(self, finding: Finding) -> str:
        """Deletes the locks and unique keys that have no job, each in a script that looks again."""
        if finding.code != LOCKS.code or finding.queue is None:
            return "nothing was done"
        gone = 0
        for one in (await self._find_locks([finding.queue]))[0]:
            keys = [one.key, one.keys.job(one.job_id), one.keys.active]
            words = [one.job_id, "lock" if one.is_lock else "unique"]
            gone += int(await self._server.scripts.run("drop_ownerless", keys, words))
        return f"deleted {counted(gone, 'key')} without an owner"

    # --- the checks -------------------------------------------------------------------------------------------------

    async def _events(self, queues: Sequence[str], most: int) -> list[Finding]:
        keys = [self._server.keys(queue) for queue in queues]
        lengths: list[int] = await in_steps(self._server.store, [("XLEN", one.events) for one in keys])
        found: list[Finding] = []
        for one, length in zip(keys, lengths, strict=True):
            if length >= most:
                limit = await self._server.store.call("HGET", one.meta, "opts.maxLenEvents")
                evidence = f"{one.events} has {length:,} events; opts.maxLenEvents is {_text(limit) or 'not set'}"
                found.append(EVENTS.found(evidence, queue=one.queue))
        return found

    async def _versions(self, queues: Sequence[str]) -> list[Finding]:
        """Compares the versions that clients write into a queue's settings. The last one that opened a queue counts."""
        metas = [self._server.keys(queue).meta for queue in queues]
        written = await in_steps(self._server.store, [("HGET", meta, "version") for meta in metas])
        peers: defaultdict[str, list[str]] = defaultdict(list)
        for queue, raw in zip(queues, written, strict=True):
            client, _, version = _text(raw).partition(":")
            if client.startswith("bullmq") and version:
                peers[version].append(queue)
        untested = [version for version in peers if _major(version) not in TESTED]
        found = [
            UNTESTED_PEER.found(
                f"queue {peers[version][0]} was last opened by BullMQ {version}", queue=peers[version][0]
            )
            for version in sorted(untested)
        ]
        if len({_major(version) for version in peers}) > 1:
            used = ", ".join(f"{version} on {few(queues)}" for version, queues in sorted(peers.items()))
            found.append(MIXED_VERSIONS.found(f"BullMQ {used}"))
        return found

    async def _orphans(self, queue: str) -> list[Finding]:
        keys, store = self._server.keys(queue), self._server.store
        lists = [("LRANGE", getattr(keys, name), -_SAMPLE, -1) for name in _LISTS]
        sets = [("ZRANGE", getattr(keys, name), 0, _SAMPLE - 1) for name in _SETS]
        places: list[tuple[str, str]] = []
        for name, ids in zip((*_LISTS, *_SETS), await store.calls([*lists, *sets]), strict=True):
            places += [(name, raw.decode(errors="replace")) for raw in ids if not raw.startswith(_MARKER)]
        lost = await missing(store, [keys.job(job_id) for _, job_id in places])
        suspects = [place for place, away in zip(places, lost, strict=True) if away]
        if not suspects:
            return []
        # A job may have been deleted between the two reads. Its entry is then gone as well.
        listed = await store.calls(
            [("LPOS" if name in _LISTS else "ZSCORE", getattr(keys, name), job_id) for name, job_id in suspects]
        )
        gone = [
            f"{job_id} in {name}" for (name, job_id), there in zip(suspects, listed, strict=True) if there is not None
        ]
        if not gone:
            return []
        evidence = f"{len(gone)} of the {len(places)} entries that were looked at have no data: {few(gone)}"
        return [ORPHANS.found(evidence, queue=queue)]

    async def _locks(self, queues: Sequence[str]) -> list[Finding]:
        orphans, complete = await self._find_locks(queues)
        by_queue: defaultdict[str, list[_Orphan]] = defaultdict(list)
        for one in orphans:
            by_queue[one.keys.queue].append(one)
        seen = "" if complete else f" (among the first {_KEYS_LOOKED_AT:,} keys)"
        return [
            LOCKS.found(
                f"{counted(len(some), 'key')}{seen}: {few([one.words for one in some])}",
                queue=queue,
                fix=f"delete {counted(len(some), 'key')} of queue {queue} that no job owns",
            )
            for queue, some in by_queue.items()
        ]

    async def _find_locks(self, queues: Sequence[str]) -> tuple[list[_Orphan], bool]:
        """Returns locks and unique keys that would stay without end, and whether all keys were looked at."""
        pattern = _GLOB.sub(r"\\\1", f"{self._server.prefix}:") + "*"
        known, complete = await some_keys(self._server.store, pattern, _KEYS_LOOKED_AT)
        wanted = set(queues)
        held: list[_Orphan] = []
        uniques: list[tuple[Keys, str]] = []
        for key in known:
            queue, _, rest = key.removeprefix(f"{self._server.prefix}:").partition(":")
            if queue not in wanted:
                continue
            if rest.endswith(":lock"):
                held.append(_Orphan(self._server.keys(queue), key, rest.removesuffix(":lock"), is_lock=True))
            elif rest.startswith("de:"):
                uniques.append((self._server.keys(queue), key))
        owners = await in_steps(self._server.store, [("GET", key) for _, key in uniques])
        for (keys, key), owner in zip(uniques, owners, strict=True):
            if owner is not None:
                held.append(_Orphan(keys, key, owner.decode(errors="replace"), is_lock=False))
        return await self._ownerless(held), complete

    async def _ownerless(self, held: Sequence[_Orphan]) -> list[_Orphan]:
        store = self._server.store
        lives: list[int] = await in_steps(store, [("PTTL", one.key) for one in held])
        lasting = [one for one, life in zip(held, lives, strict=True) if life == -1]
        away = await missing(store, [one.keys.job(one.job_id) for one in lasting])
        found: list[_Orphan] = []
        for one, gone in zip(lasting, away, strict=True):
            if gone or (one.is_lock and await store.call("LPOS", one.keys.active, one.job_id) is None):
                found.append(one)
        # A job that ended between two reads has taken its keys with it.
        lives = await in_steps(store, [("PTTL", one.key) for one in found])
        return [one for one, life in zip(found, lives, strict=True) if life == -1]


def _text(raw: Any) -> str:
    return raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw or "")


def _major(version: str) -> int | None:
    head = version.partition(".")[0]
    return int(head) if head.isdecimal() else None
