"""The source and the target of a move, and what its operator has decided."""

from __future__ import annotations

from dataclasses import dataclass

from jobwire.errors import InvalidOption
from jobwire.model import State
from jobwire.pipeline.move.survey import DROPPABLE
from jobwire.pipeline.stores.address import checked, store_name
from jobwire.pipeline.stores.ids import digest

_FINISHED = ("completed", "failed")


@dataclass(frozen=True)
class Route:
    """The two queues and the decisions of the operator. `drop`: what jobs may lose on the way (names, unique_keys,
    parents). `leave`: jobs that can't be moved stay in the source instead of stopping the move. `include`: finished
    states to move too."""

    source: str
    target: str
    queue: str
    to_queue: str
    drop: frozenset[str] = frozenset()
    leave: bool = False
    include: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if (self.from_store, self.queue) == (self.to_store, self.to_queue):
            raise InvalidOption("to", self.to_store, "is the queue that the jobs are in")
        for what in sorted(self.drop - {*DROPPABLE}):
            raise InvalidOption("drop", what, f"must be of {', '.join(DROPPABLE)}")
        for what in sorted(self.include - {*_FINISHED}):
            raise InvalidOption("include", what, f"must be of {', '.join(_FINISHED)}")

    @property
    def from_protocol(self) -> str:
        return checked(self.source).protocol

    @property
    def to_protocol(self) -> str:
        return checked(self.target).protocol

    @property
    def from_store(self) -> str:
        return store_name(self.source)

    @property
    def to_store(self) -> str:
        return store_name(self.target)

    @property
    def name(self) -> str:
        """Returns a name that is always the same for the same two queues. An interrupted move is found by it."""
        return f"move-{digest(self.from_store, self.queue, self.to_store, self.to_queue)}"

    @property
    def finished(self) -> frozenset[State]:
        return frozenset(State(state) for state in self.include)
