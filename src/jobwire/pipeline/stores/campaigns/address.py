"""The URL of the campaigns' database: a plain PostgreSQL URL, without a protocol of queues."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobwire.errors import MissingExtra

if TYPE_CHECKING:
    from jobwire.campaigns.database import DatabaseSettings


def settings_of(url: str) -> DatabaseSettings:
    """Returns the parts of the URL. Refuses any other URL."""
    try:
        from jobwire.campaigns.database import DatabaseSettings  # noqa: PLC0415 needs the driver
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("jobwire."):
            raise
        raise MissingExtra("campaigns", "postgres") from missing
    return DatabaseSettings.parse(url)


def database_name(url: str) -> str:
    """Returns the content of the column `store`: the URL without its login and parameters, and the schema unless it is
    `public`.

    >>> database_name("postgres://app:secret@db.example:5432/main?sslmode=require&schema=news")
    'postgresql://db.example:5432/main?schema=news'
    """
    settings = settings_of(url)
    where = re.sub(r"^postgres(?:ql)?://(?:[^/@]*@)?", "postgresql://", settings.url.partition("?")[0])
    return where if settings.schema == "public" else f"{where}?schema={settings.schema}"
