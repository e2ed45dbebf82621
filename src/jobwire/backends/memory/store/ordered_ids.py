"""Job ids kept in the order of a key."""

from __future__ import annotations

import heapq

Key = tuple[int, int]


class OrderedIds:
    """A set of ids, ordered by a key. Removal is lazy: an entry of the heap counts while its key is the current one."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self._heap: list[tuple[Key, str]] = []

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._keys

    def put(self, job_id: str, key: Key) -> None:
        self._keys[job_id] = key
        heapq.heappush(self._heap, (key, job_id))

    def discard(self, job_id: str) -> bool:
        return self._keys.pop(job_id, None) is not None

    def first(self) -> tuple[Key, str] | None:
        while self._heap:
            key, job_id = self._heap[0]
            if self._keys.get(job_id) == key:
                return key, job_id
            heapq.heappop(self._heap)
        return None

    def ordered(self) -> list[tuple[Key, str]]:
        return sorted((key, job_id) for job_id, key in self._keys.items())
