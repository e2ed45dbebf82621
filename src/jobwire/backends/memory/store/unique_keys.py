"""Unique keys: which job holds each key, and until when."""

from __future__ import annotations

from dataclasses import dataclass

from jobwire.backends.memory.store.record import Record


@dataclass(slots=True)
class Holder:
    job_id: str
    until: int | None
    """The end of the key's ttl. None: the key is taken until the job has finished."""


class UniqueKeys:
    def __init__(self) -> None:
        self._holders: dict[str, Holder] = {}

    def holder(self, key: str, now: int) -> Holder | None:
        holder = self._holders.get(key)
        if holder is not None and holder.until is not None and holder.until <= now:
            del self._holders[key]
            return None
        return holder

    def take(self, key: str, job_id: str, until: int | None) -> None:
        self._holders[key] = Holder(job_id, until)

    def release(self, record: Record, *, finished: bool = False) -> None:
        """Frees the key that the job holds. A key with a ttl stays taken after the job has finished, until the ttl
        ends."""
        if record.unique_key is None:
            return
        holder = self._holders.get(record.unique_key)
        if holder is None or holder.job_id != record.id or (finished and holder.until is not None):
            return
        del self._holders[record.unique_key]

    def free(self, key: str, now: int) -> bool:
        """Frees a key, whichever job holds it. Returns False if it was free."""
        return self.holder(key, now) is not None and self._holders.pop(key, None) is not None

    def clear(self) -> None:
        self._holders.clear()
