"""Options that only Monque has.

Several workers of one process can be one Monque instance, with one identity and a limit on the sum of their jobs:

    mail = MonqueInstance("mailer-1", concurrency=20)
    Worker("welcome", greet, url, concurrency=20, native=MonqueWorker(instance=mail))
    Worker("digest", collect, url, concurrency=20, native=MonqueWorker(instance=mail))
"""

from __future__ import annotations

import asyncio

from jobwire.checks import Seconds, seconds, text, whole, yes_or_no
from jobwire.errors import InvalidOption
from jobwire.native.made import native

_LEAST = {"base_retry_interval": 0.0, "max_backoff_delay": 0.001, "lock_timeout": 0.001, "retention_interval": 0.05}


class MonqueInstance:
    """An identity, and a limit on concurrent jobs, that several workers share.

    `concurrency` limits the jobs that run at once over all these workers. None: no limit. The first worker to ask gets
    the free slots, as in Monque, where names that were registered first get them. All its workers must run in one event
    loop.
    """

    def __init__(self, name: str | None = None, *, concurrency: int | None = None) -> None:
        self.id = None if name is None else text("instance", name)
        self._limit = None if concurrency is None else whole("instance.concurrency", concurrency, minimum=1)
        self._busy = 0
        self._waiting: list[asyncio.Future[None]] = []
        self.known = False
        """True once one of its workers has checked that no other running instance has this id."""
        self.looking = asyncio.Lock()
        """Held by the worker that checks it."""

    @property
    def full(self) -> bool:
        return self._limit is not None and self._busy >= self._limit

    def reserve(self, wanted: int) -> int:
        """Takes up to `wanted` slots. Returns the number taken."""
        taken = wanted if self._limit is None else max(0, min(wanted, self._limit - self._busy))
        self._busy += taken
        return taken

    def free(self, slots: int) -> None:
        self._busy -= slots
        if slots and not self.full:
            for one in self._waiting:
                if not one.done():
                    one.set_result(None)

    async def has_room(self) -> None:
        """Waits until a slot is free."""
        while self.full:
            freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(freed)
            try:
                await freed
            finally:
                self._waiting.remove(freed)


@native
class MonqueWorker:
    """Options of one worker on Monque."""

    max_retries: int | None = None
    """Runs of a job in all. By default the value in the URL."""
    base_retry_interval: Seconds = 1.0
    """The delay before the second run, doubled with each failure up to `max_backoff_delay`."""
    max_backoff_delay: Seconds = 86_400.0
    lock_timeout: Seconds = 1800.0
    """The age of a peer's lock from which its job is recovered, if its heartbeat has stopped too."""
    retention_interval: Seconds = 60.0
    """The time between deletions of old finished jobs."""
    results: bool = True
    """False does not store the values that handlers return."""
    instance: MonqueInstance | None = None
    """The identity and limit to share with other workers of the process."""

    def __post_init__(self) -> None:
        if self.max_retries is not None:
            whole("max_retries", self.max_retries, minimum=1)
        for name, least in _LEAST.items():
            seconds(name, getattr(self, name), minimum=least)
        yes_or_no("results", self.results)
        if self.instance is not None and not isinstance(self.instance, MonqueInstance):  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
            raise InvalidOption("instance", self.instance, "must be a jobwire.native.MonqueInstance")
