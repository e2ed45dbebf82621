"""The address of a collection of jobs, with the settings of an instance that the URL gives.

In Monque, attempts, backoff and time zone are settings of the instance, not of the job. So they are given in the URL or
to a worker, and workers of both languages must be configured alike.
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
"""The database that the drivers of all languages use when a URL names none, so that peers with one URL share it."""
SIDE_SUFFIX = "_jobwire"
DEFAULT_MAX_RETRIES = 10


@dataclass(frozen=True, slots=True)
class CollectionAddress:
    """A parsed address. `driver_url` contains the password, `where` does not."""

    where: str
    driver_url: str
    folder: Path | None
    database: str
    collection: str
    driver_options: Mapping[str, str]
    """The options of the driver in the URL, their names in lower case."""
    tz: str = "UTC"
    max_retries: int = DEFAULT_MAX_RETRIES
    create_indexes: bool = True

    @property
    def write_timeout_ms(self) -> int | None:
        """The time that a write may wait for other members, if the URL gives one. The driver checks that it is a
        number."""
        given = self.driver_options.get("wtimeoutms", "")
        return int(given) if given.isdecimal() else None

    @property
    def side(self) -> str:
        """The name of the collection of side data."""
        return self.collection + SIDE_SUFFIX


def collection_address(address: Address) -> CollectionAddress:
    """Returns the parts of an address. Raises InvalidOption for an unknown option or time zone."""
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
