"""The columns of the tables about campaigns. They begin with `store`, the database that they come from, and have no
queue."""

from __future__ import annotations

from jobwire.pipeline.lake.schemas import columns

CAMPAIGNS = columns(
    "store string",
    "id string",
    "name string",
    "description string",
    "batch string",  # its name
    "template string",  # its name
    "params string",  # JSON object
    "mode string",  # TEST, LIVE
    "delivery_rate int",  # messages per minute
    "retry_limit int",  # attempts after the first one
    "status string",
    "progress int",
    "total_jobs int",
    "sent int",
    "failed int",
    "created_at timestamp",
    "updated_at timestamp",
    "started_at timestamp",
    "completed_at timestamp",
    "created_by string",  # username
    "paused_until timestamp",
    "paused_reason string",
    "error string",
    "malformed string",  # why the stored row can't be used as it is; null for a sound one
)
"""`format("jobwire")` with `table=campaigns`."""

DELIVERIES = columns(
    "store string",
    "id string",
    "campaign_id string",
    "campaign string",  # its name; null if the campaign is missing, as below
    "mode string",  # of the campaign
    "delivery_rate int",  # of the campaign, at the time of the read
    "channel_id string",
    "channel string",  # its username; null if the channel is missing
    "status string",  # QUEUED, SENDING, SENT, FAILED
    "attempts int",  # made so far
    "reason string",  # the code that the error begins with; null where it begins with none
    "error string",  # of the last attempt
    "created_at timestamp",
    "started_at timestamp",  # of the last attempt
    "sent_at timestamp",
    "failed_at timestamp",
    "duplicate_of string",
    "malformed string",
)
"""`format("jobwire")` with `table=deliveries`: one message of a campaign to one channel, from the table `jobs` of the
campaigns' database."""

CHANNELS = columns(
    "store string",
    "id string",
    "username string",
    "category string",
    "is_active boolean",
    "error_count int",  # failures since the last success
    "last_error string",
    "created_at timestamp",
    "updated_at timestamp",
    "malformed string",
)
"""`format("jobwire")` with `table=channels`."""

_SEEN = ("seen_at timestamp", "run string")
CAMPAIGN_SNAPSHOT = CAMPAIGNS.plus(*_SEEN)
"""Bronze: campaigns as they were at the last ingest."""
CHANNEL_SNAPSHOT = CHANNELS.plus(*_SEEN)
"""Bronze: channels as they were at the last ingest."""
DELIVERY_SNAPSHOTS = DELIVERIES.plus(*_SEEN)
"""Bronze: deliveries as they were at the time of an ingest."""

SILVER_DELIVERIES = DELIVERIES.without(["malformed"]).plus("seen_at timestamp", "day date")
"""`day` is that of created_at; 1970-01-01 where the row has no such time."""

_OF_A_CAMPAIGN = ("store string", "campaign_id string", "campaign string", "mode string")
_SETTLED = (
    "sent bigint",
    "failed bigint",
    "attempts bigint",  # that the messages which were sent or failed then took in all
    "retries bigint",  # those of them that were not a message's first
    "busiest_minute timestamp",  # in which most messages were sent; null if none was
    "busiest_sent bigint",  # messages sent in that minute, to be compared with the delivery rate
    "delivery_rate int",  # messages per minute; the highest known, if it was changed meanwhile
)
CAMPAIGN_HOURLY = columns(*_OF_A_CAMPAIGN, "hour timestamp", *_SETTLED)
CAMPAIGN_DAILY = columns(*_OF_A_CAMPAIGN, "day date", *_SETTLED, "failures string")
"""`failures` is a JSON object of failed messages by reason, the most frequent first."""

CHANNEL_HEALTH = columns(
    "store string",
    "channel_id string",
    "channel string",
    "category string",
    "active boolean",  # null for a channel that was deleted
    "deliveries bigint",  # messages of LIVE campaigns that were sent or failed
    "failures bigint",
    "consecutive_errors int",  # failures since the last success, as the database counts them
    "last_success timestamp",
    "last_failure timestamp",
    "last_reason string",  # of the last failure
    "silent_since timestamp",  # the first failure after the last success; null if the last message arrived
)
