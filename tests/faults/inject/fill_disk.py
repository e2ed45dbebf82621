"""Lets no file of the server grow, as if the disk were full.

It needs no rights: the limit is that of the server's process (RLIMIT_FSIZE). A write then fails as on a full disk, with
another number of the error. What that leads to does not depend on the number: Valkey refuses writes (MISCONF) until its
file can grow, or ends if it must sync before each answer; MongoDB, and PostgreSQL whose log can't grow, end, and the
keeper starts them again. If a table of PostgreSQL can't grow, clients get an error with a number. A trigger raises it.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from awaiting import eventually
from faults.inject.fault import Fault
from faults.inject.suspend_server import processes_of
from faults.scene import Scene
from faults.stores.pgboss import PgBoss
from faults.stores.redis_store import RedisServer


class FillDisk(Fault):
    outage = True
    times = 6
    times_short = 1

    def __init__(self) -> None:
        self._rounds = 0

    async def inject(self, scene: Scene) -> None:
        self._rounds += 1
        store, seconds = scene.store, 1.0 if scene.short else 3.0
        if self._rounds % 2 and isinstance(store, RedisServer):
            await _refuse_writes(store, seconds)
        elif self._rounds % 2 and isinstance(store, PgBoss):
            await _refuse_rows(store, seconds)
        else:
            server = store.server.pid
            with _no_file_grows(server):
                await eventually(lambda: store.server.pid not in (0, server), within=90)


async def _refuse_writes(store: RedisServer, seconds: float) -> None:
    """Keeps the disk of a server full that syncs its file every second, and so goes on without it."""
    with store.client() as client:
        client.config_set("appendfsync", "everysec")
        try:
            with _no_file_grows(store.server.pid):
                await eventually(lambda: client.info("persistence")["aof_last_write_status"] == "err", within=30)
                await asyncio.sleep(seconds)
            await eventually(lambda: client.info("persistence")["aof_last_write_status"] == "ok", within=30)
        finally:
            client.config_set("appendfsync", "always")


async def _refuse_rows(store: PgBoss, seconds: float) -> None:
    with store.client() as client:
        client.execute(
            f"CREATE OR REPLACE FUNCTION {store.place}.is_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$"
        )
        client.execute(
            f"CREATE TRIGGER is_full BEFORE INSERT OR UPDATE ON {store.place}.job"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {store.place}.is_full()"
        )
        try:
            await asyncio.sleep(seconds)
        finally:
            client.execute(f"DROP FUNCTION {store.place}.is_full CASCADE")


@contextmanager
def _no_file_grows(pid: int) -> Iterator[None]:
    """Lets no write of the server's processes succeed that would make a file longer."""
    limited = processes_of(pid)
    for one in limited:
        _limit_files(one, 1)
    try:
        yield
    finally:
        for one in limited:
            _limit_files(one, None)


def _limit_files(pid: int, size: int | None) -> None:
    """Limits the size of files that a process may write, or ends that, unless the process has ended.

    A process may do that to others of its own account. An embedded server that root has started has another one. Root
    need not have power over it in a container, and can become it.
    """
    child = os.fork()
    if child == 0:
        done = 1
        with suppress(Exception):
            status = Path(f"/proc/{pid}/status").read_text().splitlines()
            uid, gid = (
                int(next(line for line in status if line.startswith(name)).split()[1]) for name in ("Uid", "Gid")
            )
            if uid != os.getuid():
                os.setgid(gid)
                os.setuid(uid)
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))
            done = 0
        os._exit(done)
    assert os.waitpid(child, 0)[1] == 0 or not Path(f"/proc/{pid}").exists(), f"the limit of {pid} was not set"
