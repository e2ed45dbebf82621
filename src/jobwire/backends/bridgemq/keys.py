"""The keys of BridgeMQ: `<namespace>:<category>:…`. A namespace contains all job types, and a queue is a job type."""

from __future__ import annotations

import re

from jobwire.errors import InvalidOption

DEFAULT_NAMESPACE = "bridge"
GONE = "x:gone"
"""The entry that replaces a job taken out of the middle of the waiting list."""

_LONGEST = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def check_name(field: str, value: str) -> None:
    """Raises InvalidOption for a job type, job id or server id that can't be part of a key."""
    if not 1 <= len(value) <= _LONGEST or _CONTROL.search(value):
        raise InvalidOption(field, value, f"must have 1 to {_LONGEST} characters and no control characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidOption(field, value, "must be valid Unicode (it has a lone surrogate)") from None


def check_job_id(value: str) -> None:
    check_name("id", value)
    if value.startswith(GONE):
        raise InvalidOption("id", value, f"must not start with {GONE!r}, which marks gaps in the waiting list")


def check_server_id(value: str) -> None:
    """Raises InvalidOption for a server id whose key would be one of the registry's own keys."""
    check_name("server_id", value)
    if value == "active" or value.startswith("heartbeat:"):
        raise InvalidOption("server_id", value, "must not be 'active' nor begin with 'heartbeat:'")


def has_hash_tag(namespace: str) -> bool:
    """Returns True if a cluster keeps the whole namespace on one server.

    >>> has_hash_tag("{bridge}"), has_hash_tag("bridge"), has_hash_tag("a{}")
    (True, False, False)
    """
    opening = namespace.find("{")
    return opening >= 0 and namespace.find("}", opening + 1) > opening + 1


class Keys:
    """The keys of one namespace that Python code uses. Scripts build theirs from `base`.

    >>> keys = Keys("bridge")
    >>> keys.worker("w1"), keys.heartbeat("w1"), keys.data("7"), keys.wake
    ('bridge:workers:w1', 'bridge:workers:heartbeat:w1', 'bridge:jobs:data:7', 'bridge:x:wake')
    """

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.base = base = f"{namespace}:"
        self.workers = base + "workers:active"
        self.waiting = base + "jobs:waiting"
        self.active = base + "jobs:active"
        self.delayed = base + "jobs:delayed"
        self.cron = base + "jobs:cron"
        self.deadletter = base + "jobs:deadletter"
        self.leader = base + "scheduler:lock"
        self.paused = base + "queues:paused"
        self.types = base + "x:types"
        self.version = base + "x:version"
        self.wake = base + "x:wake"
        """The channel for wakeups. A message is a job type, or `*` for all."""

    def worker(self, server: str) -> str:
        return f"{self.base}workers:{server}"

    def heartbeat(self, server: str) -> str:
        return f"{self.base}workers:heartbeat:{server}"

    def data(self, job_id: str) -> str:
        return f"{self.base}jobs:data:{job_id}"

    def lock(self, job_id: str) -> str:
        return f"{self.base}jobs:lock:{job_id}"

    def logs(self, job_id: str) -> str:
        return f"{self.base}x:logs:{job_id}"

    def claims(self, job_type: str) -> str:
        return f"{self.base}x:claims:{job_type}"

    def indexed(self, job_type: str) -> str:
        """Returns the key of the waiting jobs of a type."""
        return f"{self.base}x:type:{job_type}"

    def delayed_of(self, job_type: str) -> str:
        """Returns the key of the delayed jobs of a type, in our index."""
        return f"{self.base}x:delayed:{job_type}"

    def routes(self, scope: str) -> str:
        return f"{self.base}x:routes:{scope}"

    def servers(self, job_type: str) -> str:
        """Returns the key of the servers that jobs of the type have as their target."""
        return f"{self.base}x:servers:{job_type}"

    def route(self, signature: str, scope: str) -> str:
        """Returns the key of the waiting jobs of a route."""
        return f"{self.base}x:line:{signature}:{scope}"
