"""Job ids kept in the order of a key."""

from __future__ import annotations

import heapq

Place = tuple[int, int]


class Line:
    """An ordered set of ids. Leaving is lazy: an entry in the heap counts only while its place is the current one."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._heap: list[tuple[Place, str]] = []

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._places

    def put(self, job_id: str, place: Place) -> None:
        self._places[job_id] = place
        heapq.heappush(self._heap, (place, job_id))

    def discard(self, job_id: str) -> bool:
        return self._places.pop(job_id, None) is not None

    def first(self) -> tuple[Place, str] | None:
        while self._heap:
            place, job_id = self._heap[0]
            if self._places.get(job_id) == place:
                return place, job_id
            heapq.heappop(self._heap)
        return None

    def ordered(self) -> list[tuple[Place, str]]:
        return sorted((place, job_id) for job_id, place in self._places.items())
