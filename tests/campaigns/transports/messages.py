"""Messages for tests."""

from __future__ import annotations

from typing import Any

from jobwire.campaigns.transports import Message


def message(number: int = 1, **changes: Any) -> Message:
    fields: dict[str, Any] = {
        "job_id": f"job-{number}",
        "campaign_id": "spring",
        "channel_id": f"channel-{number}",
        "channel_username": f"@channel{number}",
        "text": f"Hello {number}",
        "idempotency_key": f"spring/job-{number}",
    }
    return Message(**{**fields, **changes})
