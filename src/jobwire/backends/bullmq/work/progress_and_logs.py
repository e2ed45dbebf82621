"""Progress and log lines that handlers write for their jobs."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bullmq.connection import Server
from jobwire.boundary import Acted


class BullProgress:
    """Implements Progress."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted:
        return await self._server.act("progress", queue, [job_id, value])


class BullLogs:
    """Implements Logs."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        """Appends a line. With `keep` 0 the job's own option decides how many lines are kept, by default all."""
        return await self._server.act("log", queue, [job_id, line, keep])

    async def logs(self, queue: str, job_id: str, last: int = 0) -> Sequence[str]:
        lines: list[bytes] = await self._server.store.call("LRANGE", self._server.keys(queue).logs(job_id), -last, -1)
        return [line.decode(errors="replace") for line in lines]
