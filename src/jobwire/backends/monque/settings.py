"""Where a collection is, and how an instance works on it.

Monque keeps retries, backoff and time zone as settings of the instance, not of the job, so they stand in the URL and
may be given to a worker: a mixed fleet must agree on them by configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from jobwire.backends.monque.instance import Instance
from jobwire.cron.zones import zone_of
from jobwire.errors import InvalidOption
from jobwire.options import seconds, whole
from jobwire.urls import Address

DEFAULT_COLLECTION = "monque_jobs"
DEFAULT_DATABASE = "test"
"""Where the drivers of all languages go when a URL names no database, so that peers of one URL meet."""
SIDE_SUFFIX = "_jobwire"
DEFAULT_MAX_RETRIES = 10


@dataclass(frozen=True, slots=True)
class Place:
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


def place_of(address: Address) -> Place:
    options = address.options
    rest, _, query = address.driver_url.partition("?")
    path = rest.partition("://")[2].partition("/")[2]
    tz = options.get("tz", "UTC")
    zone_of(tz)
    return Place(
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


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Monque's own settings of a worker, in seconds; given as options of Worker by these names."""

    max_retries: int = DEFAULT_MAX_RETRIES
    base_retry_interval: float = 1.0
    max_backoff_delay: float = 86_400.0
    lock_timeout: float = 1800.0
    retention_interval: float = 60.0
    results: bool = True
    instance: Instance | None = None


_DURATIONS = {"base_retry_interval": 0.0, "max_backoff_delay": 0.001, "lock_timeout": 0.001, "retention_interval": 0.05}


def worker_settings(place: Place, extra: Mapping[str, Any]) -> WorkerSettings:
    """The worker's settings, checked; what it was not told is as the URL says."""
    known = [field.name for field in fields(WorkerSettings)]
    given = WorkerSettings(max_retries=place.max_retries)
    for name, value in extra.items():
        checked: Any = value
        if name in _DURATIONS:
            checked = seconds(name, value, minimum=_DURATIONS[name])
        elif name == "max_retries":
            whole(name, value, minimum=1)
        elif name == "results":
            if not isinstance(value, bool):
                raise InvalidOption(name, value, "must be True or False")
        elif name == "instance":
            if not isinstance(value, Instance):
                raise InvalidOption(name, value, "must be a jobwire.backends.monque.Instance")
        else:
            raise InvalidOption(name, value, f"is not an option of a Monque worker; known are {', '.join(known)}")
        given = replace(given, **{name: checked})
    return given
