"""The payloads of the two queues, with the names that Node.js producers and workers use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from jobwire.campaigns.models import Claim, FedJob, FeedPlan
from jobwire.campaigns.templates import MessageTemplate
from jobwire.campaigns.transports import Message
from jobwire.errors import Unrecoverable, shown
from jobwire.record import record


class BadPayload(Unrecoverable):
    """A job of the queue does not have the fields that it needs."""

    def __init__(self, field: str, value: object, rule: str) -> None:
        super().__init__(f"data.{field}: {rule} (got {shown(value)})")


@dataclass(frozen=True, slots=True)
class StartCampaign:
    """The payload of `start-campaign`."""

    campaign_id: str
    user_id: str | None = None

    @classmethod
    def of(cls, data: Any) -> StartCampaign:
        """Reads a payload. Raises BadPayload."""
        fields = _object(data)
        return cls(_text(fields, "campaignId"), _maybe_text(fields, "userId"))


@record
class SendMessage:
    """The payload of `send-message`. `text` is the template's content, with its parameters filled in."""

    job_id: str
    campaign_id: str
    channel_id: str
    channel_username: str
    text: str
    media_type: str | None = None
    media_url: str | None = None

    @classmethod
    def of(cls, data: Any) -> SendMessage:
        """Reads a payload. Raises BadPayload."""
        fields = _object(data)
        return cls(
            job_id=_text(fields, "jobId"),
            campaign_id=_text(fields, "campaignId"),
            channel_id=_text(fields, "channelId"),
            channel_username=_text(fields, "channelUsername"),
            text=_maybe_empty(fields, "templateContent"),
            media_type=_maybe_text(fields, "mediaType"),
            media_url=_maybe_text(fields, "mediaUrl"),
        )

    def message(self, claim: Claim) -> Message:
        """Returns the message that is sent for a claim. Raises InvalidOption if none can be made of the payload."""
        return Message(
            job_id=claim.job_id,
            campaign_id=claim.campaign_id,
            channel_id=claim.channel_id,
            channel_username=self.channel_username,
            text=self.text,
            idempotency_key=claim.idempotency_key,
            media_type=self.media_type,
            media_url=self.media_url,
            attempt=claim.attempt,
            mode=claim.mode,
        )


def payload_of(plan: FeedPlan, template: MessageTemplate, job: FedJob) -> dict[str, Any]:
    """Returns the payload for a job that is fed to the queue. Media that is not there is left out."""
    fields: dict[str, Any] = {
        "jobId": job.job_id,
        "campaignId": plan.campaign_id,
        "channelId": job.channel_id,
        "channelUsername": job.username,
        "templateContent": template.render(plan.params, {"username": job.username, "category": job.category}),
        "attempt": job.attempts + 1,
    }
    if plan.media_type is not None:
        fields |= {"mediaType": plan.media_type, "mediaUrl": plan.media_url}
    return fields


def _object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Unrecoverable(f"data: must be a JSON object (got {shown(data)})")
    return cast("dict[str, Any]", data)


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise BadPayload(name, value, "must be a string that is not empty")
    return value


def _maybe_empty(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise BadPayload(name, value, "must be a string")
    return value


def _maybe_text(fields: dict[str, Any], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name)
