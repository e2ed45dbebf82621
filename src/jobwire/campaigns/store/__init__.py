"""The store: statements on the tables, grouped by table.

Every method takes the connection to run on, works in that connection's transaction, and keeps nothing itself. A
transaction that changes several tables does so in the order jobs, campaigns, channels, so that two never wait for each
other: settle jobs first, then record the health of their channels.
"""

from __future__ import annotations

from functools import cache

from jobwire.campaigns.database import check_schema
from jobwire.campaigns.store.batches import Batches
from jobwire.campaigns.store.campaigns import Campaigns
from jobwire.campaigns.store.channels import Channels
from jobwire.campaigns.store.jobs import Jobs
from jobwire.campaigns.store.sending import SendingProgress
from jobwire.campaigns.store.templates import Templates
from jobwire.campaigns.store.users import Users

__all__ = ["Batches", "Campaigns", "Channels", "Jobs", "SendingProgress", "Store", "Templates", "Users", "store_of"]


class Store:
    """The tables of one schema."""

    def __init__(self, schema: str = "public") -> None:
        self.schema = check_schema(schema)
        self.users = Users(self.schema)
        self.batches = Batches(self.schema)
        self.channels = Channels(self.schema)
        self.templates = Templates(self.schema)
        self.campaigns = Campaigns(self.schema)
        self.jobs = Jobs(self.schema)
        self.sending = SendingProgress(self.schema)


@cache
def store_of(schema: str) -> Store:
    """Returns the store of a schema. Its statements are read and fitted once."""
    return Store(schema)
