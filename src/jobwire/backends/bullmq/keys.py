"""The keys of BullMQ's queues. Every key is `<prefix>:<queue>:<word>`. BullMQ adds no braces of its own."""

from __future__ import annotations

import base64
from functools import cached_property

from jobwire.errors import InvalidOption
from jobwire.model import JobKey

DEFAULT_PREFIX = "bull"


def check_queue_name(queue: str) -> None:
    """Raises InvalidOption for a name that BullMQ could confuse with a key of another queue."""
    if not queue:
        raise InvalidOption("queue", queue, "must be a non-empty string")
    if ":" in queue:
        raise InvalidOption("queue", queue, "must not contain ':', which separates the parts of a BullMQ key")
    try:
        queue.encode()
    except UnicodeEncodeError:
        raise InvalidOption("queue", queue, "must be valid Unicode (it has a lone surrogate)") from None


def hash_tag(key: str) -> str | None:
    """Returns the text between a key's first braces, from which a cluster computes the slot. Returns None if there is
    none: then the slot depends on the whole key.

    >>> hash_tag("{bull}:emails:wait"), hash_tag("bull:{}:wait"), hash_tag("bull:emails:wait")
    ('bull', None, None)
    """
    opening = key.find("{")
    closing = key.find("}", opening + 1)
    return key[opening + 1 : closing] if opening >= 0 and closing > opening + 1 else None


class Keys:
    """The keys of one queue.

    >>> keys = Keys("bull", "emails")
    >>> keys.wait, keys.job("7"), keys.lock("7"), keys.connection_name("w1")
    ('bull:emails:wait', 'bull:emails:7', 'bull:emails:7:lock', 'bull:ZW1haWxz:w:w1')
    """

    def __init__(self, prefix: str, queue: str) -> None:
        check_queue_name(queue)
        self.prefix = prefix
        self.queue = queue
        self.qualified = f"{prefix}:{queue}"
        """The name of this queue in its children's options (`parent.queueKey`)."""
        self.base = base = f"{prefix}:{queue}:"
        self.id = base + "id"
        self.meta = base + "meta"
        self.wait = base + "wait"
        self.paused = base + "paused"
        self.prioritized = base + "prioritized"
        self.priority_counter = base + "pc"
        self.delayed = base + "delayed"
        self.active = base + "active"
        self.completed = base + "completed"
        self.failed = base + "failed"
        self.waiting_children = base + "waiting-children"
        self.marker = base + "marker"
        self.events = base + "events"
        self.stalled = base + "stalled"
        self.stalled_check = base + "stalled-check"
        self.limiter = base + "limiter"
        self.repeat = base + "repeat"
        self.metrics_completed = base + "metrics:completed"
        self.metrics_failed = base + "metrics:failed"

    def job(self, job_id: str) -> str:
        return self.base + job_id

    def lock(self, job_id: str) -> str:
        return f"{self.base}{job_id}:lock"

    def logs(self, job_id: str) -> str:
        return f"{self.base}{job_id}:logs"

    def dependencies(self, job_id: str) -> str:
        return f"{self.base}{job_id}:dependencies"

    def processed(self, job_id: str) -> str:
        return f"{self.base}{job_id}:processed"

    def ignored_failures(self, job_id: str) -> str:
        return f"{self.base}{job_id}:failed"

    def unsuccessful(self, job_id: str) -> str:
        return f"{self.base}{job_id}:unsuccessful"

    def scheduler(self, scheduler_id: str) -> str:
        return f"{self.base}repeat:{scheduler_id}"

    def scheduled_job_id(self, scheduler_id: str, at_ms: int) -> str:
        """Returns the id of the job that a scheduler makes for one time (an id, not a key)."""
        return f"repeat:{scheduler_id}:{at_ms}"

    def unique(self, key: str) -> str:
        return f"{self.base}de:{key}"

    def unique_pending(self, key: str) -> str:
        """Returns the key in which BullMQ >= 5.72 keeps the job that follows the running owner of a unique key."""
        return f"{self.base}dn:{key}"

    def job_key(self, full: bytes) -> JobKey:
        """Returns the queue and id in a full key. The queue keeps a prefix that is not ours: `other:queue`.

        >>> Keys("bull", "emails").job_key(b"bull:letters:7")
        JobKey(queue='letters', id='7')
        """
        text = full.decode(errors="replace")
        own = f"{self.prefix}:"
        if text.startswith(own):
            queue, _, job_id = text.removeprefix(own).partition(":")
        else:
            queue, _, job_id = text.rpartition(":")
        return JobKey(queue, job_id)

    @cached_property
    def _client_name(self) -> str:
        return f"{self.prefix}:{base64.b64encode(self.queue.encode()).decode()}"

    def connection_name(self, worker: str | None) -> str:
        """Returns the name of a worker's blocking connection, by which peers list workers."""
        return f"{self._client_name}:w:{worker}" if worker else self._client_name

    def events_connection_name(self) -> str:
        return f"{self._client_name}:qe"
