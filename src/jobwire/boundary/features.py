"""The features of protocols.

A `Feature` is something that some protocols have and others lack. A backend lists its features in `Capabilities`, and
has a part (`boundary.parts`) for each one that needs code of its own. A feature is checked before the first write. A
missing one is refused with the protocol's nearest alternative, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeVar

from jobwire.errors import NotSupported

Part = TypeVar("Part")


class Feature(Enum):
    """A feature that some protocols have. The value is its name in a refusal."""

    JOB_NAMES = "job names beside the queue's"
    PRIORITIES = "priorities"
    LIFO = "lifo order"
    ATTEMPTS = "attempts per job"
    BACKOFF_FIXED = "fixed backoff"
    BACKOFF_LINEAR = "linear backoff"
    BACKOFF_EXPONENTIAL = "exponential backoff"
    BACKOFF_CUSTOM = "custom backoff"
    TIMEOUTS = "timeout per job"
    EXPIRY = "expiry of waiting jobs"
    KEEP = "keep_completed and keep_failed per job"
    RESULTS = "results of jobs"
    RATE_LIMIT = "rate limits"
    THROTTLE = "rate limit from a handler"
    TRANSACTIONAL_ADD = "add inside the caller's transaction"

    UNIQUE = "unique keys"
    UNIQUE_TTL = "unique keys with ttl"
    UNIQUE_EXTEND = "unique keys with extend"
    UNIQUE_REPLACE = "unique keys with replace"
    UNIQUE_OWNERS = "owners of unique keys"

    SCHEDULES = "schedules"
    SCHEDULE_EVERY = "schedules by interval"
    SCHEDULE_CRON = "schedules by cron"
    SCHEDULE_TZ = "time zones in schedules"
    SCHEDULE_LIMIT = "limits on schedules"
    SCHEDULE_WINDOW = "start and end of schedules"
    SCHEDULE_IMMEDIATELY = "schedules that start immediately"

    FLOWS = "flows"
    DEPENDENCIES = "jobs that wait for the results of others"
    EDITS = "changes to a job in the store"
    BULK = "changes to all jobs at once"
    CANCEL = "cancelled state"
    PAUSE = "pause"
    PROGRESS = "progress"
    LOGS = "job logs"
    EVENTS = "event stream"
    EVENT_CONTROL = "control of the event stream"
    LIMITS = "limits of the whole queue"
    KEY_LIMITS = "limits per key"
    TRACES = "a field for the producer's trace"
    ROUTING = "routing by target"
    TRANSACTIONS = "transaction that a job is completed in"
    WORKERS = "list of workers"
    QUEUES = "list of queues"
    DIAGNOSIS = "diagnosis of a server"


BACKOFFS = {
    "fixed": Feature.BACKOFF_FIXED,
    "linear": Feature.BACKOFF_LINEAR,
    "exponential": Feature.BACKOFF_EXPONENTIAL,
    "custom": Feature.BACKOFF_CUSTOM,
}
"""The feature of each kind of Backoff."""
ALL_UNIQUE = frozenset(
    {Feature.UNIQUE, Feature.UNIQUE_TTL, Feature.UNIQUE_EXTEND, Feature.UNIQUE_REPLACE, Feature.UNIQUE_OWNERS}
)
ALL_SCHEDULES = frozenset(
    {
        Feature.SCHEDULES,
        Feature.SCHEDULE_EVERY,
        Feature.SCHEDULE_CRON,
        Feature.SCHEDULE_TZ,
        Feature.SCHEDULE_LIMIT,
        Feature.SCHEDULE_WINDOW,
        Feature.SCHEDULE_IMMEDIATELY,
    }
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """A protocol's features, and its properties that are a matter of degree."""

    protocol: str
    features: frozenset[Feature] = frozenset()
    ids: Literal["any", "uuid", "objectid"] = "any"
    """The shape of an id that the caller gives a job. Which texts of it are refused is a rule of the protocol."""
    priority: Literal["low_first", "high_first"] | None = None
    priority_classes: int | None = None
    """The number of classes of priority. Within one, jobs run in the order of their arrival. None: every number is a
    class."""
    default_priority: int = 0
    """The priority of a job that is added without one."""
    default_attempts: int | None = None
    """The attempts of a job that is added without a number. None: the store decides, so the snapshot of an added job
    has none."""
    null_character: bool = True
    """True if texts in data and results may hold U+0000."""
    null_key: bool = True
    """True if the keys of objects in data may hold U+0000, too."""
    no_data: bytes = b"null"
    """The JSON that the protocol's own client stores for a job that is added without data."""
    split_from: int = 8
    """The concurrency from which on a worker has two calls under way at a time. Below it, one call is faster."""
    nearest: Mapping[Feature, str] = field(default_factory=dict[Feature, str])
    """The protocol's nearest alternative for each missing feature, as the end of a sentence."""

    def has(self, feature: Feature) -> bool:
        """Returns True if the protocol has the feature: `queue.capabilities.has(Feature.FLOWS)`."""
        return feature in self.features

    def require(self, feature: Feature) -> None:
        """Raises NotSupported if the protocol lacks the feature."""
        if not self.has(feature):
            raise self.refusal(feature)

    def refusal(self, feature: Feature) -> NotSupported:
        """Returns the error for a missing feature."""
        return NotSupported(self.protocol, feature.value, self.nearest.get(feature, ""))

    def part(self, found: Part | None, feature: Feature) -> Part:
        """Returns the backend's part for a feature. Raises NotSupported if it has none."""
        if found is None:
            raise self.refusal(feature)
        return found
