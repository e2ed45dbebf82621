"""Data of a BridgeMQ namespace that is not as it should be, beside the settings of the server."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.connection import side_version
from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.bridgemq.keys import GONE
from jobwire.backends.redisio.diagnose import RedisChecks
from jobwire.backends.redisio.each_node import in_steps, missing, some_keys
from jobwire.backends.side_version import bring_up_to_date, findings
from jobwire.boundary import Check, Finding, Thresholds
from jobwire.boundary.finding_kinds import LOCKS, ORPHANS, SIDE_OLDER
from jobwire.counted import counted, few

_SAMPLE = 100
_KEYS_LOOKED_AT = 50_000
_FRESH_MS = 30_000
"""A peer registers before its first heartbeat, which may come that much later."""
_FINDS = {"waiting": "LPOS", "active": "SISMEMBER", "delayed": "ZSCORE", "cron": "ZSCORE", "deadletter": "LPOS"}
_GLOB = re.compile(r"([\\*?\[\]])")


class BridgeDiagnosis:
    """Implements Diagnosis."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._keys = namespace.keys
        self._store = namespace.store
        self._redis = RedisChecks(namespace.store)

    async def server(self) -> str:
        return await self._redis.server()

    async def now(self) -> float:
        return await self._redis.now()

    async def stalled(self, queue: str, limit: int) -> Sequence[str]:
        """Returns active jobs whose lock has expired or belongs to a worker without heartbeat. They are looked at
        twice, since a job may end between two reads."""
        _, records = await self._store.call("HSCAN", self._keys.claims(queue), 0, "COUNT", 1000)
        ids = [raw.decode(errors="replace") for raw in records]
        if not ids:
            return []
        locks = await in_steps(self._store, [("GET", self._keys.lock(job_id)) for job_id in ids])
        owners = sorted({raw.decode(errors="replace") for raw in locks if raw is not None})
        alive = {owner.encode() for owner in owners if await self._is_alive(owner)}
        found = [job_id for job_id, owner in zip(ids, locks, strict=True) if owner is None or owner not in alive][
            :limit
        ]
        if not found:
            return []
        claims = self._keys.claims(queue)
        held = await self._store.calls([("HEXISTS", claims, job_id) for job_id in found])
        again = await self._store.calls([("GET", self._keys.lock(job_id)) for job_id in found])
        return [
            job_id
            for job_id, claimed, owner in zip(found, held, again, strict=True)
            if claimed and (owner is None or owner not in alive)
        ]

    async def _is_alive(self, server: str) -> bool:
        beats, [raw] = await self._store.calls(
            [("EXISTS", self._keys.heartbeat(server)), ("MGET", self._keys.worker(server))]
        )
        about = codec.parse(raw) if raw else None
        seen = (about or {}).get("lastSeen")
        now = await self._store.clock.now_ms()
        return bool(beats) or (isinstance(seen, (int, float)) and now - seen < _FRESH_MS)

    def checks(self, queues: Sequence[str], thresholds: Thresholds) -> Sequence[Check]:
        async def side() -> Sequence[Finding]:
            return await findings(side_version.BridgeSideData(self._namespace), side_version.STEPS)

        return [
            *self._redis.checks(thresholds),
            Check("version of side data", side),
            Check("orphaned jobs", self._orphans),
            Check("locks", self._locks),
        ]

    async def fix(self, finding: Finding) -> str:
        """Deletes locks that would stay without end, each in a script that looks again, or updates the side data."""
        if finding.code == SIDE_OLDER.code:
            await bring_up_to_date(side_version.BridgeSideData(self._namespace), side_version.STEPS)
            return finding.fix
        if finding.code != LOCKS.code:
            return "nothing was done"
        gone = 0
        for key in (await self._find_locks())[0]:
            gone += int(await self._namespace.scripts.run("drop_ownerless", [self._keys.base, key], []))
        return f"deleted {counted(gone, 'lock')} without an owner"

    # --- the checks -------------------------------------------------------------------------------------------------

    async def _orphans(self) -> Sequence[Finding]:
        keys = self._keys
        names = ("waiting", "active", "delayed", "cron", "deadletter")
        entries = await self._store.calls(
            [
                ("LRANGE", keys.waiting, 0, _SAMPLE - 1),
                ("SRANDMEMBER", keys.active, _SAMPLE),
                ("ZRANGE", keys.delayed, 0, _SAMPLE - 1),
                ("ZRANGE", keys.cron, 0, _SAMPLE - 1),
                ("LRANGE", keys.deadletter, 0, _SAMPLE - 1),
            ]
        )
        listed = [
            (name, raw.decode(errors="replace"))
            for name, ids in zip(names, entries, strict=True)
            for raw in ids
            if not raw.startswith(GONE.encode())
        ]
        lost = await missing(self._store, [keys.data(job_id) for _, job_id in listed])
        suspects = [entry for entry, away in zip(listed, lost, strict=True) if away]
        # A job may have been deleted between the two reads. Its entry is then gone as well.
        still = [await self._store.call(_FINDS[name], getattr(keys, name), job_id) for name, job_id in suspects]
        gone = [
            f"{job_id} in {name}"
            for (name, job_id), there in zip(suspects, still, strict=True)
            if there is not None and (there or name != "active")  # the position of the first entry is 0
        ]
        if not gone:
            return []
        evidence = f"{len(gone)} of the {len(listed)} entries that were looked at have no data: {few(gone)}"
        return [ORPHANS.found(evidence)]

    async def _locks(self) -> Sequence[Finding]:
        found, complete = await self._find_locks()
        if not found:
            return []
        seen = "" if complete else f" (among the first {_KEYS_LOOKED_AT:,} keys)"
        evidence = f"{counted(len(found), 'lock')} without an end{seen}: {few(found)}"
        return [LOCKS.found(evidence, fix=f"delete {counted(len(found), 'lock')} that no running job owns")]

    async def _find_locks(self) -> tuple[list[str], bool]:
        """Returns locks without an end that no running job owns, and whether all keys were looked at."""
        base = self._keys.lock("")
        keys, complete = await some_keys(self._store, _GLOB.sub(r"\\\1", base) + "*", _KEYS_LOOKED_AT)
        keys.append(self._keys.leader)
        lives: list[int] = await in_steps(self._store, [("PTTL", key) for key in keys])
        lasting = [key for key, life in zip(keys, lives, strict=True) if life == -1]
        running = await in_steps(
            self._store, [("SISMEMBER", self._keys.active, key.removeprefix(base)) for key in lasting]
        )
        return [key for key, runs in zip(lasting, running, strict=True) if not runs], complete
