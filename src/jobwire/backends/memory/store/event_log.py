"""The last events of a queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jobwire import codec
from jobwire.backends.memory.store.record import at_ms
from jobwire.model import Event, EventKind

KEPT_EVENTS = 10_000
_KINDS = {
    **{kind.value: kind for kind in EventKind if kind is not EventKind.OTHER},
    "waiting-children": EventKind.WAITING_CHILDREN,
    "duplicated": EventKind.DUPLICATE,
    "deduplicated": EventKind.DUPLICATE,
}
"""Kinds by BullMQ's names of events, which the log uses."""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event as stored. JSON stays encoded, so that readers never share a mutable value."""

    number: int
    type: str
    at: int
    job_id: str | None
    fields: Mapping[str, str | bytes]

    def event(self) -> Event:
        data = {name: codec.loads(value) if isinstance(value, bytes) else value for name, value in self.fields.items()}
        if self.job_id is not None:
            data["jobId"] = self.job_id
        return Event(
            id=str(self.number),
            kind=_KINDS.get(self.type, EventKind.OTHER),
            native_type=self.type,
            job_id=self.job_id,
            at=at_ms(self.at),
            data=data,
            result=data.get("returnvalue"),
            error=data.get("failedReason"),
        )


class EventLog:
    """A bounded log of events: the oldest are dropped."""

    def __init__(self) -> None:
        self._kept: deque[LoggedEvent] = deque(maxlen=KEPT_EVENTS)
        self.last = 0

    def append(self, event: LoggedEvent) -> None:
        self._kept.append(event)
        self.last = event.number

    def keep(self, number: int) -> None:
        """Sets how many events the log holds at most."""
        self._kept = deque(self._kept, maxlen=number)

    def trim(self, number: int) -> int:
        """Drops all but the last `number` events. Returns how many were dropped."""
        gone = max(0, len(self._kept) - number)
        for _ in range(gone):
            self._kept.popleft()
        return gone

    def clear(self) -> None:
        self._kept.clear()

    def after(self, number: int) -> list[LoggedEvent]:
        return list(reversed(list(self._newer_than(number))))

    def _newer_than(self, number: int) -> Iterator[LoggedEvent]:
        for event in reversed(self._kept):
            if event.number <= number:
                return
            yield event
