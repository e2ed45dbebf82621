"""Settings of a Redis or Valkey server that lose or delay jobs, whatever the protocol.

INFO has most of them. CONFIG GET has the rest: hosted servers often refuse it, and that is a note then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.each_node import on_each_node
from jobwire.boundary import Check, Finding, FindingKind, Severity, Thresholds
from jobwire.boundary.finding_kinds import CONNECTIONS, MEMBER_DOWN, NOT_EXAMINED, REPLICA, REPLICA_LAG
from jobwire.errors import StoreRefused

EVICTION = FindingKind(
    "eviction",
    Severity.CRITICAL,
    "the server deletes keys when its memory is full",
    "jobs, locks and queues vanish without a trace",
    "CONFIG SET maxmemory-policy noeviction, and the same in the server's configuration file",
)
MEMORY = FindingKind(
    "memory",
    Severity.WARNING,
    "the server's memory is nearly full",
    "a full server refuses new jobs, and outcomes of running ones",
    "delete finished jobs (jobwire clean QUEUE --older-than 1d), or raise maxmemory",
)
NO_PERSISTENCE = FindingKind(
    "no-persistence",
    Severity.CRITICAL,
    "the server writes nothing to disk",
    "a restart loses every job",
    "CONFIG SET appendonly yes, then CONFIG REWRITE",
)
WEAK_PERSISTENCE = FindingKind(
    "weak-persistence",
    Severity.WARNING,
    "the server's disk is behind its memory",
    "a crash loses the jobs and outcomes of that time, and runs finished jobs again",
    "CONFIG SET appendonly yes and appendfsync everysec, then CONFIG REWRITE",
)
PERSISTENCE_FAILS = FindingKind(
    "persistence-fails",
    Severity.CRITICAL,
    "the server can't write to its disk",
    "a restart loses the jobs since the last successful write, and the server may refuse writes",
    "look at the server's log; free disk space or correct the permissions of its folder",
)
_GIB = 2**30


def server_name(about: Mapping[str, Any]) -> str:
    """Returns the name and the version of a server from its INFO."""
    name = str(about.get("server_name") or "redis").capitalize()
    return f"{name} {about.get('valkey_version') or about.get('redis_version', '?')}"


class RedisChecks:
    """The checks of one server, or of all primaries of a cluster."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def server(self) -> str:
        nodes = await on_each_node(self._store, "INFO")
        names = sorted({server_name(about) for _, about in nodes})
        return f"{', '.join(names)} ({len(nodes)} nodes)" if self._store.cluster else names[0]

    async def now(self) -> float:
        self._store.clock.forget()
        now = await self._store.clock.now_ms()
        if not self._store.clock.available:
            raise StoreRefused(f"{self._store.where} refused: the account may not run TIME")
        return now / 1000

    def checks(self, thresholds: Thresholds) -> list[Check]:
        async def memory() -> Sequence[Finding]:
            return await self._each(lambda node, about: _memory(node, about, thresholds))

        async def replication() -> Sequence[Finding]:
            return await self._each(lambda node, about: _replication(node, about, thresholds))

        async def connections() -> Sequence[Finding]:
            return await self._connections(thresholds)

        return [
            Check("memory", memory),
            Check("persistence", self._persistence),
            Check("replication", replication),
            Check("connections", connections),
        ]

    async def _each(self, look: Callable[[str, Mapping[str, Any]], list[Finding]]) -> list[Finding]:
        nodes = await on_each_node(self._store, "INFO")
        return [finding for node, about in nodes for finding in look(_of(node), about)]

    async def _persistence(self) -> Sequence[Finding]:
        nodes = await on_each_node(self._store, "INFO")
        found = [finding for node, about in nodes for finding in _failing(_of(node), about)]
        try:
            [saves, syncs] = [
                dict(await on_each_node(self._store, "CONFIG GET", one)) for one in ("save", "appendfsync")
            ]
        except StoreRefused as refused:
            if all(about.get("aof_enabled") for _, about in nodes):
                return found
            return [*found, NOT_EXAMINED.found(f"whether the server saves to disk: {refused}")]
        for node, about in nodes:
            save, sync = saves[node].get("save", ""), syncs[node].get("appendfsync", "")
            found += _persistence(_of(node), about, str(save), str(sync))
        return found

    async def _connections(self, thresholds: Thresholds) -> Sequence[Finding]:
        nodes = await on_each_node(self._store, "INFO")
        if all("maxclients" in about for _, about in nodes):
            limits = {node: int(about["maxclients"]) for node, about in nodes}
        else:
            answers = await on_each_node(self._store, "CONFIG GET", "maxclients")
            limits = {node: int(answer["maxclients"]) for node, answer in answers}
        found: list[Finding] = []
        for node, about in nodes:
            used, most = int(about.get("connected_clients", 0)), limits[node]
            if used >= thresholds.connections * most:
                evidence = f"{_of(node)}{used:,} of {most:,} connections are in use"
                remedy = "CLIENT LIST shows who holds them; close idle clients, or CONFIG SET maxclients to more"
                found.append(CONNECTIONS.found(evidence, remedy=remedy))
        return found


def _of(node: str) -> str:
    return f"{node}: " if node else ""


def _memory(node: str, about: Mapping[str, Any], thresholds: Thresholds) -> list[Finding]:
    found: list[Finding] = []
    policy, most, used = about.get("maxmemory_policy"), int(about.get("maxmemory", 0)), int(about.get("used_memory", 0))
    gone = int(about.get("evicted_keys", 0))
    if policy not in (None, "noeviction"):
        limit = f"maxmemory is {most / _GIB:.2f} GiB" if most else "maxmemory is not set, so it does not evict yet"
        evidence = f"{node}maxmemory-policy is {policy}; {limit}; {gone:,} keys evicted since the start"
        found.append(EVICTION.found(evidence, severity=Severity.CRITICAL if most or gone else Severity.WARNING))
    if most and used >= thresholds.memory * most:
        evidence = f"{node}{used / _GIB:.2f} of {most / _GIB:.2f} GiB are in use ({used / most:.0%})"
        found.append(MEMORY.found(evidence))
    return found


def _failing(node: str, about: Mapping[str, Any]) -> list[Finding]:
    states = {name: about.get(name) for name in ("rdb_last_bgsave_status", "aof_last_write_status")}
    states["aof_last_bgrewrite_status"] = about.get("aof_last_bgrewrite_status") if about.get("aof_enabled") else "ok"
    bad = [f"{name} is {state}" for name, state in states.items() if state not in (None, "ok")]
    return [PERSISTENCE_FAILS.found(f"{node}{', '.join(bad)}")] if bad else []


def _persistence(node: str, about: Mapping[str, Any], save: str, sync: str) -> list[Finding]:
    if about.get("aof_enabled"):
        if sync != "no":
            return []
        return [WEAK_PERSISTENCE.found(f"{node}appendfsync is no: the operating system decides when to write")]
    if save:
        changes = int(about.get("rdb_changes_since_last_save", 0))
        evidence = f"{node}appendonly is no; save is {save!r}; {changes:,} changes since the last snapshot"
        return [WEAK_PERSISTENCE.found(evidence)]
    copies = int(about.get("connected_slaves", 0))
    if copies:
        evidence = f"{node}appendonly is no and save is empty; {copies} connected replicas hold the only copies"
        return [NO_PERSISTENCE.found(evidence, severity=Severity.WARNING)]
    return [NO_PERSISTENCE.found(f"{node}appendonly is no, save is empty, and there is no replica")]


def _replication(node: str, about: Mapping[str, Any], thresholds: Thresholds) -> list[Finding]:
    if about.get("role") == "slave":
        primary = f"{about.get('master_host')}:{about.get('master_port')}"
        evidence = f"{node}its primary is {primary}, and the link to it is {about.get('master_link_status')}"
        return [REPLICA.found(evidence)]
    found: list[Finding] = []
    end = int(about.get("master_repl_offset", 0))
    for number in range(int(about.get("connected_slaves", 0))):
        replica: Mapping[str, Any] = about.get(f"slave{number}", {})
        name = f"{replica.get('ip')}:{replica.get('port')}"
        lag, behind = float(replica.get("lag", 0)), end - int(replica.get("offset", end))
        if replica.get("state") != "online":
            found.append(MEMBER_DOWN.found(f"{node}replica {name} is in state {replica.get('state')}"))
        elif lag >= thresholds.replica_lag:
            evidence = f"{node}replica {name} last answered {lag:.0f} s ago and is {behind:,} bytes behind"
            found.append(REPLICA_LAG.found(evidence))
    return found
