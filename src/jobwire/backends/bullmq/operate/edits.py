"""Changes to jobs that are in the store."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bullmq.codec import milliseconds
from jobwire.backends.bullmq.connection import Server
from jobwire.backends.bullmq.operate import admin
from jobwire.backends.bullmq.rules import MAX_PRIORITY
from jobwire.boundary import Acted
from jobwire.errors import InvalidOption


class BullEdits:
    """Implements Edits."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def update_data(self, queue: str, job_id: str, data: bytes) -> Acted:
        return await self._server.act("update_data", queue, [job_id, data])

    async def change_priority(self, queue: str, job_id: str, priority: int, front: bool) -> Acted:
        if not 0 <= priority <= MAX_PRIORITY:
            raise InvalidOption("priority", priority, f"must lie between 0 (first of all) and {MAX_PRIORITY}")
        return await self._server.act("change_priority", queue, [job_id, priority, int(front)])

    async def change_delay(self, queue: str, job_id: str, delay: float) -> Acted:
        args = [job_id, milliseconds(delay), await self._server.scripts.clock.now_ms()]
        return await self._server.act("change_delay", queue, args)

    async def clear_logs(self, queue: str, job_id: str, keep: int) -> Acted:
        keys = self._server.keys(queue)
        logs = keys.logs(job_id)
        clear = ("LTRIM", logs, -keep, -1) if keep else ("DEL", logs)
        found, _ = await self._server.store.calls([("EXISTS", keys.job(job_id)), clear])
        return Acted.DONE if found else Acted.NOT_FOUND

    async def retry_anew(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.retry(self._server, queue, job_ids, reset_attempts=True)
