"""The shapes of responses. Their fields are those of the rows and reports of `jobwire.campaigns`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from jobwire.campaigns.report import CampaignReport
from jobwire.campaigns.states import CampaignStatus, JobStatus

ShownT = TypeVar("ShownT", bound="Shown")


class Shown(BaseModel):
    """A row as JSON."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, row: Any) -> Self:
        """Makes it of a row that has these fields."""
        return cls.model_validate(row)


class Failed(BaseModel):
    """An error."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "error": "rate: must be at least 1 (got 0)",
                    "field": "rate",
                    "value": 0,
                    "rule": "must be at least 1",
                }
            ]
        },
    )

    error: str = Field(description="What is wrong, as a sentence.")
    field: str | None = Field(default=None, description="The field of the request that is the cause.")
    value: Any = Field(default=None, description="The value of that field.")
    rule: str | None = Field(default=None, description="The rule that it breaks.")


class Page(BaseModel, Generic[ShownT]):
    """A page of a list."""

    items: list[ShownT]
    next: str | None = Field(description="The `after` of the next page. null if this is the last.")

    @classmethod
    def of(cls, rows: Sequence[Any], limit: int, kind: type[ShownT], key: Callable[[Any], str]) -> Self:
        """Makes a page of at most `limit` rows, of which one more was read."""
        shown = rows[:limit]
        return cls(items=[kind.of(row) for row in shown], next=key(shown[-1]) if len(rows) > limit else None)


class CampaignShown(Shown):
    """A campaign with its counters."""

    id: str
    name: str = Field(examples=["spring"])
    description: str | None
    batch_id: str | None
    template_id: str | None
    params: Any = Field(examples=[{"product": "Tea"}])
    mode: str = Field(description="TEST or LIVE.", examples=["LIVE"])
    delivery_rate: int = Field(description="Messages per minute.", examples=[60])
    retry_limit: int = Field(description="Attempts after the first one.", examples=[3])
    status: CampaignStatus
    progress: int = Field(description="(sent + failed) / total_jobs, in percent.", examples=[42])
    total_jobs: int = Field(description="Messages of the campaign; 0 before its start.", examples=[1000])
    sent: int = Field(examples=[418])
    failed: int = Field(examples=[2])
    created_at: datetime | None
    updated_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    created_by_id: str | None
    paused_until: datetime | None = Field(description="When a campaign that waits for a flood limit goes on.")
    paused_reason: str | None
    error: str | None = Field(description="Why the campaign has failed.")


class CountsShown(Shown):
    """Messages of a campaign by state."""

    queued: int
    sending: int
    sent: int
    failed: int
    attempts: int
    retried: int = Field(description="Messages that took more than one attempt.")
    first_sent_at: datetime | None
    last_sent_at: datetime | None
    busiest_minute: int = Field(description="The most messages sent in one minute of the clock.")


class ReasonShown(Shown):
    """A kind of failure."""

    reason: str = Field(examples=["CHAT_WRITE_FORBIDDEN"])
    count: int
    example: str = Field(description="The message of one of them.")


class ReportShown(Shown):
    """The outcomes of a campaign's messages."""

    campaign: CampaignShown
    counts: CountsShown
    reasons: list[ReasonShown]
    per_minute: float | None = Field(description="Messages per minute between the first and the last.")

    @classmethod
    def of(cls, row: CampaignReport) -> Self:
        """Makes it of a report."""
        return cls(
            campaign=CampaignShown.of(row.campaign),
            counts=CountsShown.of(row.counts),
            reasons=[ReasonShown.of(reason) for reason in row.reasons],
            per_minute=row.per_minute,
        )


class DeliveryShown(Shown):
    """One message: who was to get it, and whether they did."""

    job_id: str
    channel_id: str
    username: str | None = Field(examples=["@news"])
    status: JobStatus
    attempts: int
    sent_at: datetime | None
    failed_at: datetime | None
    error_message: str | None


class PreviewShown(Shown):
    """The message that one channel would receive."""

    username: str = Field(examples=["@news"])
    text: str = Field(examples=["Hello @news, meet Tea!"])
    media_type: str | None
    media_url: str | None


class ChannelShown(Shown):
    """A channel and its health."""

    id: str
    username: str = Field(examples=["@news"])
    category: str | None
    is_active: bool
    error_count: int = Field(description="Failures since the last success. The fifth deactivates the channel.")
    last_error: str | None


class BadLineShown(Shown):
    """A line that was not imported."""

    number: int
    reason: str


class ImportShown(Shown):
    """The result of an import."""

    lines: int = Field(description="Lines with a channel, good and bad.")
    added: int
    existing: int = Field(description="Channels that were there before. They are not changed.")
    inactive: int = Field(description="Those of the existing ones that are inactive, and stay so.")
    duplicates: int = Field(description="Lines that repeat a channel of an earlier line.")
    listed: int = Field(description="Channels that are new in the batch.")
    bad: int
    bad_lines: list[BadLineShown] = Field(description="The first of the bad lines.")


class TemplateShown(Shown):
    """A template."""

    id: str
    name: str = Field(examples=["hello"])
    content: str = Field(examples=["Hello {username}, meet {product}!"])
    media_type: str | None
    media_url: str | None


class BatchShown(Shown):
    """A named set of channels."""

    id: str
    name: str = Field(examples=["news"])
    created_at: datetime | None
