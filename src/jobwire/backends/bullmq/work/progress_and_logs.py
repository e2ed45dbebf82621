"""What handlers publish about their jobs."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bullmq.connection import Server
from jobwire.boundary import Acted

_ANSWERS = {1: Acted.DONE, 0: Acted.NOT_FOUND}


class BullProgress:
    """Implements Progress."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted:
        return _ANSWERS[await self._server.run("progress", queue, [job_id, value])]


class BullLogs:
    """Implements Logs."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        """Append a line; `keep` 0 leaves the number of lines to the job's own option, which is all by default."""
        return _ANSWERS[await self._server.run("log", queue, [job_id, line, keep])]

    async def logs(self, queue: str, job_id: str) -> Sequence[str]:
        lines: list[bytes] = await self._server.store.call("LRANGE", self._server.keys(queue).logs(job_id), 0, -1)
        return [line.decode(errors="replace") for line in lines]
