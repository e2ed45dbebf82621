"""Rows of the tables, as the store returns them. The names of the fields are those of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from jobwire.campaigns.states import CampaignStatus, JobStatus
from jobwire.record import record


@dataclass(frozen=True, slots=True)
class User:
    """A person who creates campaigns."""

    id: str
    username: str


@dataclass(frozen=True, slots=True)
class Batch:
    """A named set of channels."""

    id: str
    name: str
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel that receives messages, and how it fared."""

    id: str
    username: str
    category: str | None
    is_active: bool
    error_count: int
    """Failures since the last success."""
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Template:
    """A text with parameters, and perhaps a photo, a video or a document."""

    id: str
    name: str
    content: str
    media_type: str | None
    media_url: str | None


@dataclass(frozen=True, slots=True)
class Campaign:
    """A template, a batch of channels to send it to, and how far that has come."""

    id: str
    name: str
    description: str | None
    batch_id: str | None
    template_id: str | None
    params: Any
    mode: str
    delivery_rate: int
    """Messages per minute."""
    retry_limit: int
    """Attempts after the first one."""
    status: CampaignStatus
    progress: int
    total_jobs: int
    sent: int
    failed: int
    created_at: datetime | None
    updated_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    created_by_id: str | None
    paused_until: datetime | None
    paused_reason: str | None
    error: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", CampaignStatus(self.status))


@dataclass(frozen=True, slots=True)
class Job:
    """One message of a campaign to one channel."""

    id: str
    campaign_id: str
    channel_id: str
    status: JobStatus
    attempts: int
    error_message: str | None
    created_at: datetime | None
    started_at: datetime | None
    sent_at: datetime | None
    failed_at: datetime | None
    idempotency_key: str | None
    duplicate_of: str | None
    due_at: datetime | None
    """The time for which it has a place of its own in the queue, since it is retried or was returned."""
    returned_at: datetime | None
    """Since when it waits to be fed to the queue again."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", JobStatus(self.status))


@record
class FedJob:
    """A job that is put into the queue now, with what its message needs of the channel."""

    job_id: str
    channel_id: str
    username: str | None
    """None if the channel does not exist."""
    category: str | None
    attempts: int


@record
class Claim:
    """A job that one worker may send now. The store settles it only with the same attempt and start."""

    job_id: str
    campaign_id: str
    channel_id: str
    attempt: int
    started_at: str
    """As the database writes it, and reads it again when the claim is settled."""
    idempotency_key: str
    """The idempotency key: written before the first send and the same for every attempt, so that a transport that
    remembers it refuses a message that it has delivered already."""
    mode: str
    """TEST or LIVE."""


class Outcome(StrEnum):
    """The ways to settle a claim."""

    SENT = "SENT"
    FAILED = "FAILED"
    """Whatever attempts are left."""
    RETRY = "RETRY"
    """QUEUED for the next attempt, or FAILED if this was the last."""
    RELEASED = "RELEASED"
    """QUEUED, and the attempt does not count."""


@record
class Settlement:
    """A claim, and how it is to be settled."""

    claim: Claim
    outcome: Outcome
    error: str | None = None
    delay: float | None = None
    """Seconds until the queue has the job again. None: it is fed to the queue again."""


@record
class Settled:
    """The state of a job after it was settled."""

    job_id: str
    status: JobStatus
    campaign_id: str
    channel_id: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", JobStatus(self.status))


@dataclass(frozen=True, slots=True)
class FeedPlan:
    """The values that the next messages of a running campaign need, and the time of the first one."""

    campaign_id: str
    delivery_rate: int
    retry_limit: int
    params: Any
    template_id: str | None
    content: str | None
    """None if the template does not exist."""
    media_type: str | None
    media_url: str | None
    first: datetime
    now: datetime


@dataclass(frozen=True, slots=True)
class Grant:
    """Slots of a campaign's delivery rate: the first in `wait` seconds, which may be negative, each a step later."""

    campaign_id: str
    slots: int
    wait: float
    step: float


@dataclass(frozen=True, slots=True)
class RunningCampaign:
    """A campaign that is RUNNING. `prepared` states whether its jobs were created."""

    campaign_id: str
    prepared: bool
