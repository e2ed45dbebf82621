"""Settings and states of a MongoDB server that lose or delay jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pymongo import errors as driver

from jobwire.backends.monque.connection.store import CALL, Document, Store
from jobwire.boundary import Check, Finding, FindingKind, Severity, Thresholds
from jobwire.boundary.finding_kinds import CONNECTIONS, MEMBER_DOWN, REPLICA_LAG
from jobwire.errors import StoreRefused

STANDALONE = FindingKind(
    "standalone",
    Severity.WARNING,
    "the server is not a replica set",
    "it has no change streams and no transactions: workers poll, there are no events, and its disk is the only copy",
    "start mongod with --replSet rs0 and run rs.initiate(), also with one member",
)
WRITE_CONCERN = FindingKind(
    "write-concern",
    Severity.WARNING,
    "writes are not confirmed by a majority",
    "a failover loses jobs that were added and outcomes that were confirmed",
    "leave w out of the URL, or set w=majority",
)
SHORT_OPLOG = FindingKind(
    "short-oplog",
    Severity.NOTE,
    "the server's log of changes is short",
    "a reader of events, or a member of the set, that is away for longer can't continue",
    "db.adminCommand({replSetResizeOplog: 1, minRetentionHours: 24})",
)
URL_TIMEOUT = FindingKind(
    "url-timeout",
    Severity.WARNING,
    "calls are given up before a failover can end",
    "claims and settles fail while the members elect a primary, and their jobs are late or run again",
    "leave timeoutMS and socketTimeoutMS out of the URL, or set them to 15000 or more",
)
_UNHEALTHY = {3: "recovering", 6: "unknown", 8: "down", 9: "in rollback", 10: "removed"}
_PRIMARY, _SECONDARY = 1, 2
_LONG_OPLOG = 3600.0
_UNKNOWN_COMMAND = (59, 72)
_TIMEOUTS = ("timeoutms", "sockettimeoutms")


class MongoServerChecks:
    """The checks of one server, replica set or sharded cluster, as the account of the URL sees it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def server(self) -> str:
        async with self._store.reaching():
            about = await self._admin("buildInfo")
            hello = await self._admin("hello")
        form = (
            f"replica set {hello['setName']}" if "setName" in hello else "sharded" if "msg" in hello else "standalone"
        )
        return f"MongoDB {about['version']}, {form}"

    async def now(self) -> float:
        async with self._store.reaching():
            hello = await self._admin("hello")
        answered: datetime = hello["localTime"]
        return answered.timestamp()

    def checks(self, thresholds: Thresholds) -> list[Check]:
        async def connections() -> Sequence[Finding]:
            return await self._connections(thresholds.connections)

        async def members() -> Sequence[Finding]:
            return await self._members(thresholds.replica_lag)

        return [
            Check("form of the server", self._form),
            Check("timeouts", self._timeouts),
            Check("connections", connections),
            Check("members of the replica set", members),
            Check("length of the oplog", self._oplog),
        ]

    async def _admin(self, command: str, value: Any = 1, **more: Any) -> Document:
        return await self._store.database.client.admin.command(command, value, **more)

    async def _form(self) -> Sequence[Finding]:
        found: list[Finding] = []
        if not self._store.streams:
            found.append(STANDALONE.found("the reply to hello has no setName"))
        wanted = self._store.address.driver_options.get("w", "majority")
        if wanted != "majority":
            found.append(WRITE_CONCERN.found(f"the URL has w={wanted}"))
        return found

    async def _connections(self, share: float) -> Sequence[Finding]:
        async with self._store.reaching():
            status = await self._admin("serverStatus", repl=0, metrics=0, locks=0)
        about: Mapping[str, int] = status["connections"]
        used, most = about["current"], about["current"] + about["available"]
        if used < share * most:
            return []
        remedy = "close idle clients, or raise net.maxIncomingConnections and the limit of open files (ulimit -n)"
        return [CONNECTIONS.found(f"{used:,} of {most:,} connections are in use", remedy=remedy)]

    async def _members(self, lag: float) -> Sequence[Finding]:
        if not self._store.streams:
            return []
        try:
            async with self._store.reaching():
                status = await self._admin("replSetGetStatus")
                config = (await self._admin("replSetGetConfig"))["config"]
        except StoreRefused as refused:
            if _code(refused) in _UNKNOWN_COMMAND:
                return []  # a router of a sharded cluster: each shard has members of its own
            raise
        delays = {one["host"]: one.get("secondaryDelaySecs", 0) for one in config["members"]}
        members: list[Document] = status["members"]
        ends = [one["optimeDate"] for one in members if one["state"] == _PRIMARY and "optimeDate" in one]
        found: list[Finding] = []
        for one in members:
            if one["state"] in _UNHEALTHY or one.get("health") == 0:
                words = _UNHEALTHY.get(one["state"], "down")
                found.append(MEMBER_DOWN.found(f"member {one['name']} is {words}"))
            elif ends and one["state"] == _SECONDARY:
                behind = (max(ends) - one["optimeDate"]).total_seconds() - delays.get(one["name"], 0)
                if behind >= lag:
                    found.append(REPLICA_LAG.found(f"member {one['name']} is {behind:,.0f} s behind the primary"))
        return found

    async def _oplog(self) -> Sequence[Finding]:
        """Compares the times of the first and the last entry. A log that has not been full yet is long enough."""
        if not self._store.streams:
            return []
        local = self._store.database.client.get_database("local")
        async with self._store.reaching():
            stats = await local.command("collStats", "oplog.rs")
            if stats["size"] < 0.9 * stats["maxSize"]:
                return []
            first = await local["oplog.rs"].find_one({}, {"ts": 1}, sort=[("$natural", 1)])
            last = await local["oplog.rs"].find_one({}, {"ts": 1}, sort=[("$natural", -1)])
        kept = last["ts"].time - first["ts"].time if first and last else 0
        return (
            [SHORT_OPLOG.found(f"it holds the changes of the last {kept / 60:,.0f} min")] if kept < _LONG_OPLOG else []
        )

    async def _timeouts(self) -> Sequence[Finding]:
        given = self._store.address.driver_options
        short = [
            f"{name}={given[name]}"
            for name in _TIMEOUTS
            if given.get(name, "").isdecimal() and 0 < int(given[name]) < CALL * 1000
        ]
        return [URL_TIMEOUT.found(f"the URL has {' and '.join(short)}; an election takes up to 12 s")] if short else []


def _code(error: BaseException) -> int | None:
    cause = error.__cause__
    return cause.code if isinstance(cause, driver.OperationFailure) else None
