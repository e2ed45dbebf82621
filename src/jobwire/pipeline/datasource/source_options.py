"""The checked options of one read or write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobwire import urls
from jobwire.errors import InvalidOption
from jobwire.pipeline.privacy.rules import EVERYTHING_KEPT, Privacy
from jobwire.pipeline.stores.address import checked
from jobwire.pipeline.stores.boundary import Wanted

DEFAULT_PARTS = 8


@dataclass(frozen=True)
class SourceOptions:
    """The options of one read or write."""

    url: str
    queues: tuple[str, ...] | None
    """None: all queues of the store."""
    table: str
    store: str
    parts: int
    wanted: Wanted
    changed_from: datetime | None
    """Only deliveries that may have changed since then."""
    pushdown: bool
    max_rows: int | None
    run: str | None
    size_limit: int | None
    privacy: Privacy = EVERYTHING_KEPT
    begin: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The offsets, by queue, at which a new stream of events begins."""

    @property
    def address(self) -> urls.Address:
        return checked(self.url)

    @property
    def queue(self) -> str:
        """Returns the one queue that a write is for."""
        if self.queues is None or len(self.queues) != 1:
            raise InvalidOption("queue", self.queues, "must name the queue to write to")
        return self.queues[0]
