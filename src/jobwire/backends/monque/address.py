"""Where a collection is, and how an instance works on it.

Monque keeps retries, backoff and time zone as settings of the instance, not of the job, so they stand in the URL and
may be given to a worker: a mixed fleet must agree on them by configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from pymongo.common import URI_OPTIONS_VALIDATOR_MAP

from jobwire.cron.zones import zone_of
from jobwire.urls import Address, check_driver_options

DEFAULT_COLLECTION = "monque_jobs"
DEFAULT_DATABASE = "test"
"""Where the drivers of all languages go when a URL names no database, so that peers of one URL meet."""
SIDE_SUFFIX = "_jobwire"
DEFAULT_MAX_RETRIES = 10


@dataclass(frozen=True, slots=True)
class CollectionAddress:
    """A parsed address. `driver_url` holds the password; `where` does not."""

    where: str
    driver_url: str
    folder: Path | None
    database: str
    collection: str
    driver_options: Mapping[str, str]
    """The options of the driver in the URL, their names in small letters."""
    tz: str = "UTC"
    max_retries: int = DEFAULT_MAX_RETRIES
    create_indexes: bool = True

    @property
    def write_timeout_ms(self) -> int | None:
        """How long a write may wait for other members, if the URL says so; the driver checks that it is a number."""
        given = self.driver_options.get("wtimeoutms", "")
        return int(given) if given.isdecimal() else None

    @property
    def side(self) -> str:
        """The collection of what Monque has no place for."""
        return self.collection + SIDE_SUFFIX


def collection_address(address: Address) -> CollectionAddress:
    check_driver_options(address, URI_OPTIONS_VALIDATOR_MAP, ignore_case=True)
    options = address.options
    rest, _, query = address.driver_url.partition("?")
    path = rest.partition("://")[2].partition("/")[2]
    tz = options.get("tz", "UTC")
    zone_of(tz)
    return CollectionAddress(
        where=f"MongoDB at {address.redacted}",
        driver_url=address.driver_url,
        folder=address.folder,
        database=unquote(path) or DEFAULT_DATABASE,
        collection=options.get("collection", DEFAULT_COLLECTION),
        driver_options={key.lower(): value for key, value in parse_qsl(query, keep_blank_values=True)},
        tz=tz,
        max_retries=int(options.get("max_retries", DEFAULT_MAX_RETRIES)),
        create_indexes=options.get("create_indexes", "true") == "true",
    )
