"""Progress and log lines that handlers write for their jobs."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.redisio.answers import ACTED
from jobwire.boundary import Acted


class BridgeProgress:
    """Implements Progress."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted:
        document = codec.encode_progress(value)
        return ACTED[await self._namespace.type(queue).run("progress", queue, job_id, "progress", document)]


class BridgeLogs:
    """Implements Logs."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        return ACTED[await self._namespace.type(queue).run("progress", queue, job_id, "log", line, keep)]

    async def logs(self, queue: str, job_id: str, last: int = 0) -> Sequence[str]:
        lines: list[bytes] = await self._namespace.store.call("LRANGE", self._namespace.keys.logs(job_id), -last, -1)
        return [line.decode(errors="replace") for line in lines]
