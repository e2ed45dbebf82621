"""The options of a BridgeMQ worker beyond those of every worker."""

from __future__ import annotations

from dataclasses import dataclass

from jobwire.backends.bridgemq.keys import check_server_id
from jobwire.backends.bridgemq.native.routing import Profile
from jobwire.backends.bridgemq.rules import check_worker
from jobwire.boundary import ConsumerSettings
from jobwire.checks import seconds
from jobwire.native import BridgeMQWorker, of_kind


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The checked options of a BridgeMQWorker."""

    profile: Profile
    max_concurrent: int | None = None
    max_per_minute: int | None = None
    remember_ms: int | None = None
    """The time for which failed attempts are remembered. None: they are not."""

    @classmethod
    def read(cls, settings: ConsumerSettings) -> WorkerOptions:
        check_worker(settings)
        native = of_kind(BridgeMQWorker, settings.native, "BridgeMQ")
        server = native.server_id if native.server_id is not None else settings.worker_id
        check_server_id(server)
        profile = Profile(server, native.stack or "", frozenset(native.capabilities), native.region or "")
        keep = native.remember_attempts
        remember_ms = None if keep is None else round(seconds("remember_attempts", keep) * 1000)
        return cls(profile, native.max_concurrent, native.max_per_minute, remember_ms)
