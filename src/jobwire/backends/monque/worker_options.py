"""The native options of a worker as its consumer reads them: in seconds, and taken from the URL where not given."""

from __future__ import annotations

from dataclasses import dataclass

from jobwire.backends.monque.address import CollectionAddress
from jobwire.checks import seconds
from jobwire.native import MonqueInstance, MonqueWorker, of_kind


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of one worker, checked."""

    max_retries: int
    base_retry_interval: float
    max_backoff_delay: float
    lock_timeout: float
    retention_interval: float
    results: bool
    instance: MonqueInstance | None

    @classmethod
    def of(cls, address: CollectionAddress, given: object) -> WorkerOptions:
        """Returns the options that `Worker(native=given)` means. Raises InvalidOption for wrong ones."""
        native = of_kind(MonqueWorker, given, "Monque")
        return cls(
            max_retries=native.max_retries or address.max_retries,
            base_retry_interval=seconds("base_retry_interval", native.base_retry_interval),
            max_backoff_delay=seconds("max_backoff_delay", native.max_backoff_delay),
            lock_timeout=seconds("lock_timeout", native.lock_timeout),
            retention_interval=seconds("retention_interval", native.retention_interval),
            results=native.results,
            instance=native.instance,
        )
