"""Refuses servers that jobwire's scripts can't run on."""

from __future__ import annotations

import re
from typing import Any

from jobwire.backends.redisio.connect import RedisStore
from jobwire.errors import StoreRefused

OLDEST_SERVER = (6, 2)


async def check_server(store: RedisStore, protocol: str) -> None:
    """Raises StoreRefused for a server that is too old, or is one node of a cluster and was not addressed as such."""
    await store.call("PING")
    try:
        about: dict[str, Any] = await store.call("INFO")
    except StoreRefused:
        return  # the account may not run INFO, and may still do everything else
    version = str(about.get("redis_version", ""))
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < OLDEST_SERVER:
        oldest = ".".join(map(str, OLDEST_SERVER))
        raise StoreRefused(f"{store.where} is Redis {version}; jobwire needs {oldest} or newer")
    if about.get("cluster_enabled") == 1 and not store.cluster:
        raise StoreRefused(
            f"{store.where} is part of a cluster; connect with {protocol}+cluster:// or a RedisCluster client"
        )
