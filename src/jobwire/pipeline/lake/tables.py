"""The tables of a lake by their paths, with their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jobwire.pipeline.lake.campaign_schemas import (
    CAMPAIGN_DAILY,
    CAMPAIGN_HOURLY,
    CAMPAIGN_SNAPSHOT,
    CHANNEL_HEALTH,
    CHANNEL_SNAPSHOT,
    DELIVERY_SNAPSHOTS,
    SILVER_DELIVERIES,
)
from jobwire.pipeline.lake.schemas import (
    ARCHIVE,
    ATTEMPTS,
    BRONZE_EVENTS,
    FAILURES_DAILY,
    GAPS,
    LATENCY_HOURLY,
    QUALITY,
    QUARANTINE,
    RETRIES,
    SILVER_EVENTS,
    SILVER_JOBS,
    SNAPSHOTS,
    TALLIES,
    THROUGHPUT_HOURLY,
    WORK,
    WORK_RUNS,
    WORKERS_HOURLY,
    Columns,
)


class Reach(NamedTuple):
    """The columns by which a row counts on some days of gold: on those of both times, and perhaps on those between."""

    first: str
    last: str
    between: bool = False


BY_DAY = {
    "silver/events": SILVER_EVENTS,
    "silver/jobs": SILVER_JOBS,
    "silver/attempts": ATTEMPTS,
}
SUMMARIES = {
    "gold/throughput_hourly": THROUGHPUT_HOURLY,
    "gold/latency_hourly": LATENCY_HOURLY,
    "gold/failures_daily": FAILURES_DAILY,
    "gold/workers_hourly": WORKERS_HOURLY,
    "gold/retries": RETRIES,
    "gold/quality": QUALITY,
    "gold/gaps": GAPS,
    "quarantine": QUARANTINE,
}
"""The tables that a build makes beside silver."""
TALLIES_DAILY = "gold/tallies_daily"
"""The counts that `retries` and `quality` are sums of."""
GOLD_BY_DAY = {
    TALLIES_DAILY: "day",
    "gold/throughput_hourly": "hour",
    "gold/latency_hourly": "hour",
    "gold/failures_daily": "day",
    "gold/workers_hourly": "hour",
}
"""Tables of gold that have a part for each day, with the column of its time."""
REACHING = {
    "silver/jobs": Reach("created_at", "finished_at"),
    "silver/attempts": Reach("started_at", "ended_at", between=True),
}
"""The tables that gold by day is made from."""
ADDED_TO: Mapping[str, Columns] = {
    "archive": ARCHIVE,
    "quarantine_load": QUARANTINE,
    "work": WORK,
    "work_runs": WORK_RUNS,
}
"""Tables whose parts are days of runs, with keys such as `2026-01-31@<label>`."""
DELIVERIES_BY_DAY = {"silver/deliveries": SILVER_DELIVERIES}
CAMPAIGNS_IN_ONE = {
    "gold/campaign_hourly": CAMPAIGN_HOURLY,
    "gold/campaign_daily": CAMPAIGN_DAILY,
    "gold/channel_health": CHANNEL_HEALTH,
    "quarantine_campaigns": QUARANTINE,
}
"""Published once a campaigns' database was ingested."""
SNAPSHOT_TABLES = {
    "jobs": "bronze/job_snapshots",
    "deliveries": "bronze/deliveries",
    "campaigns": "bronze/campaigns",
    "channels": "bronze/channels",
}
"""The folders of what is read from stores, by the name of the table in the data source. Each source has a folder of its
own below."""
PUBLISHED: Mapping[str, Columns] = {
    **BY_DAY,
    **SUMMARIES,
    TALLIES_DAILY: TALLIES,
    **ADDED_TO,
    **DELIVERIES_BY_DAY,
    **CAMPAIGNS_IN_ONE,
}
"""All tables but those of bronze."""
EVENTS = "bronze/events"
"""The folder of the events that were read from stores. Each source has a folder of its own below."""
_BRONZE = {
    EVENTS: BRONZE_EVENTS,
    "bronze/job_snapshots": SNAPSHOTS,
    "bronze/deliveries": DELIVERY_SNAPSHOTS,
    "bronze/campaigns": CAMPAIGN_SNAPSHOT,
    "bronze/channels": CHANNEL_SNAPSHOT,
}


def columns_of(name: str) -> Columns:
    """Returns the columns of a published table, or of a table of one source in bronze."""
    found = PUBLISHED.get(name)
    return found if found is not None else _BRONZE["/".join(name.split("/")[:2])]


def has_days(name: str) -> bool:
    """Returns whether a table has parts for days."""
    return is_events(name) or name in BY_DAY or name in GOLD_BY_DAY or name in ADDED_TO or name in DELIVERIES_BY_DAY


def is_events(name: str) -> bool:
    """Returns whether a table holds the events of one source, as they were read."""
    return name.startswith(f"{EVENTS}/")


def is_one_part(name: str) -> bool:
    """Returns whether a table is published as a whole."""
    return (name in SUMMARIES and name not in GOLD_BY_DAY) or name in CAMPAIGNS_IN_ONE
