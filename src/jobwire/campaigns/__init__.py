"""Campaigns: one template sent to many channels, at a held rate.

The tables are an application's own, in PostgreSQL. Every function takes an open psycopg connection and works in the
transaction of that connection, so that changes of campaigns and jobs of a queue can be committed together.

    async with await connect("postgresql://localhost/app") as connection:
        print(await init(connection))
        await import_channels(connection, Path("channels.csv"), batch="news")
        await add_template(connection, "hello", "Hello {username}, meet {product}!")
        await create_campaign(connection, "launch", batch="news", template="hello", params={"product": "Tea"}, rate=60)

A connection opened by `connect` commits each call by itself, and several calls together in
`async with connection.transaction():`. See docs/campaigns.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jobwire.errors import MissingExtra

if TYPE_CHECKING:
    from jobwire.campaigns.channel_health import ChannelHealth
    from jobwire.campaigns.channels_import import BadLine, ImportRefused, ImportReport, import_channels
    from jobwire.campaigns.create import Preview, add_template, create_campaign, preview
    from jobwire.campaigns.database import DatabaseSettings, connect
    from jobwire.campaigns.errors import Ambiguous, NotFound
    from jobwire.campaigns.meter import Meter, Speed
    from jobwire.campaigns.models import (
        Batch,
        Campaign,
        Channel,
        Claim,
        FedJob,
        Job,
        Outcome,
        Settled,
        Settlement,
        Template,
        User,
    )
    from jobwire.campaigns.report import CampaignReport, Delivery, Reason
    from jobwire.campaigns.schema.install import Adopted, InitReport, NewerSchema, NotInstalled, NotOurTable, init
    from jobwire.campaigns.sending.worker import CampaignWorker
    from jobwire.campaigns.service import CampaignService
    from jobwire.campaigns.states import CampaignStatus, Ended, IllegalTransition, JobStatus
    from jobwire.campaigns.store import Store
    from jobwire.campaigns.templates import MessageTemplate

__all__ = [
    "Adopted",
    "Ambiguous",
    "BadLine",
    "Batch",
    "Campaign",
    "CampaignReport",
    "CampaignService",
    "CampaignStatus",
    "CampaignWorker",
    "Channel",
    "ChannelHealth",
    "Claim",
    "DatabaseSettings",
    "Delivery",
    "Ended",
    "FedJob",
    "IllegalTransition",
    "ImportRefused",
    "ImportReport",
    "InitReport",
    "Job",
    "JobStatus",
    "MessageTemplate",
    "Meter",
    "NewerSchema",
    "NotFound",
    "NotInstalled",
    "NotOurTable",
    "Outcome",
    "Preview",
    "Reason",
    "Settled",
    "Settlement",
    "Speed",
    "Store",
    "Template",
    "User",
    "add_template",
    "connect",
    "create_campaign",
    "import_channels",
    "init",
    "preview",
]

_HOMES = {
    "channel_health": ("ChannelHealth",),
    "channels_import": ("BadLine", "ImportRefused", "ImportReport", "import_channels"),
    "create": ("Preview", "add_template", "create_campaign", "preview"),
    "database": ("DatabaseSettings", "connect"),
    "errors": ("Ambiguous", "NotFound"),
    "meter": ("Meter", "Speed"),
    "models": (
        "Batch",
        "Campaign",
        "Channel",
        "Claim",
        "FedJob",
        "Job",
        "Outcome",
        "Settled",
        "Settlement",
        "Template",
        "User",
    ),
    "report": ("CampaignReport", "Delivery", "Reason"),
    "sending.worker": ("CampaignWorker",),
    "service": ("CampaignService",),
    "schema.install": ("Adopted", "InitReport", "NewerSchema", "NotInstalled", "NotOurTable", "init"),
    "states": ("CampaignStatus", "Ended", "IllegalTransition", "JobStatus"),
    "store": ("Store",),
    "templates": ("MessageTemplate",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Imports the names above when they are asked for: most of them need psycopg."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{_HOME_OF[name]}")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "psycopg":
            raise
        raise MissingExtra(f"{__name__}.{name}", "postgres") from missing
    return getattr(module, name)
