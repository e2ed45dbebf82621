"""What a BridgeMQ worker can be told beyond what every worker can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from jobwire.backend import ConsumerSettings
from jobwire.backends.bridgemq.keys import check_name, check_server_id
from jobwire.backends.bridgemq.routing import Profile
from jobwire.errors import InvalidOption, NotSupported
from jobwire.options import text, whole

KNOWN = ("server_id", "stack", "capabilities", "region", "max_concurrent", "max_per_minute")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """server_id: the worker's id in the registry, and what jobs may name as their server. stack, capabilities, region:
    what jobs may ask for. max_concurrent, max_per_minute: limits of the job type that this worker keeps besides those
    that jobs carry; the smaller counts."""

    profile: Profile
    max_concurrent: int | None = None
    max_per_minute: int | None = None

    @classmethod
    def read(cls, settings: ConsumerSettings) -> WorkerOptions:
        check_name("queue", settings.queue)
        extra = settings.extra
        for option, value in extra.items():
            if option not in KNOWN:
                raise InvalidOption(
                    option, value, f"is not an option of a BridgeMQ worker; known are {', '.join(KNOWN)}"
                )
        for option in ("keep_completed", "keep_failed"):
            if getattr(settings, option) is not None:
                raise NotSupported(
                    "BridgeMQ", f"{option} of a worker", "finished jobs stay for 24 hours; clean() removes them sooner"
                )
        if settings.strategy is not None:
            raise NotSupported("BridgeMQ", "custom backoff", "use fixed, linear or exponential")
        server = extra.get("server_id", settings.worker_id)
        check_server_id(text("server_id", server))
        profile = Profile(
            server, _word(extra, "stack"), frozenset(_words(extra.get("capabilities", ()))), _word(extra, "region")
        )
        return cls(profile, _limit(extra, "max_concurrent"), _limit(extra, "max_per_minute"))


def _word(extra: Any, option: str) -> str:
    value = extra.get(option)
    return text(option, value) if value is not None else ""


def _words(value: Any) -> Sequence[str]:
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise InvalidOption("capabilities", value, "must be a sequence of strings, not one string")
    return [text("capabilities", item) for item in cast(Sequence[Any], value)]


def _limit(extra: Any, option: str) -> int | None:
    value = extra.get(option)
    return None if value is None else whole(option, value, minimum=0)
