"""Progress and log lines that handlers write for their jobs."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.memory.connection import Access
from jobwire.boundary import Acted


class MemoryProgress:
    """Implements Progress."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted:
        with self._access.locked(queue) as (state, now):
            record = state.jobs.get(job_id)
            if record is None:
                return Acted.NOT_FOUND
            record.progress = value
            state.log_event("progress", now, record, data=value)
            return Acted.DONE


class MemoryLogs:
    """Implements Logs."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        with self._access.locked(queue) as (state, _):
            record = state.jobs.get(job_id)
            if record is None:
                return Acted.NOT_FOUND
            record.logs.append(line)
            if keep:
                del record.logs[:-keep]
            return Acted.DONE

    async def logs(self, queue: str, job_id: str, last: int = 0) -> Sequence[str]:
        with self._access.locked(queue) as (state, _):
            record = state.jobs.get(job_id)
            return list(record.logs[-last:]) if record is not None else []
