"""Profiles: names for stores in `jobwire.toml`, or under `[tool.jobwire]` in pyproject.toml.

    store = "staging"           # used if the command line and the environment name none

    [stores]
    prod = "bullmq+redis://app:${REDIS_PASSWORD}@redis.example:6379/0"
    staging = "pgboss+${STAGING_DATABASE_URL}"

The file is looked for in the current folder and in those above it. `${NAME}` stands for a variable of the environment,
so that the file holds no secrets. In the user name, the password and the values of options, characters that a URL
can't hold are encoded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from jobwire import settings_file, spelling, urls
from jobwire.campaigns.addresses import is_database
from jobwire.cli.exit_codes import WrongUsage
from jobwire.errors import InvalidOption
from jobwire.redact import redact_url
from jobwire.settings_file import FILE, KEYS

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Profiles:
    """The stores that one file names."""

    file: Path
    stores: Mapping[str, str]
    default: str | None = None

    def url_of(self, name: str) -> str:
        """Returns the URL of a store, or of a database of campaigns, with the variables of the environment in it.

        Raises WrongUsage if there is no such store, or if its URL can't be understood."""
        if name not in self.stores:
            near = spelling.closest(name, self.stores)
            known = f"it has {', '.join(sorted(self.stores))}" if self.stores else "it has none"
            hint = f"did you mean {near}?" if near else known
            raise WrongUsage(f"{self.file} has no store {name!r}; {hint}")
        template, what = self.stores[name], f"store {name!r} in {self.file}"
        url = expanded(template, what)
        if is_database(url):
            return url
        try:
            urls.parse(url)
        except InvalidOption as error:  # shows the text of the file: a variable may be a secret, wherever it stands
            raise WrongUsage(f"{what}: {error.rule} (got {redact_url(template)!r})") from None
        return url


def located(url: str | None, store: str | None) -> str | None:
    """Returns the URL of the store that a command line means, or None for the embedded server.

    In this order: --url or --store, JOBWIRE_URL or JOBWIRE_STORE, the default of the file. Raises WrongUsage for a URL
    that can't be understood, wherever it comes from.
    """
    found = _located(url, store)
    if found is not None or "JOBWIRE_URL" in os.environ:
        understood(found)
    return found


def understood(url: str | None) -> None:
    """Raises WrongUsage if the URL of a store, or None for JOBWIRE_URL, can't be understood."""
    try:
        urls.parse(urls.default_url() if url is None else url)
    except InvalidOption as error:
        raise WrongUsage(str(error)) from None


def _located(url: str | None, store: str | None) -> str | None:
    if url is not None and store is not None:
        raise WrongUsage("give either --url or --store, not both")
    if url is not None:
        return url
    if store is None:
        store = os.environ.get("JOBWIRE_STORE")
        if store == "":
            raise WrongUsage("JOBWIRE_STORE is set but empty: give it the name of a store, or unset it")
        if store is not None and "JOBWIRE_URL" in os.environ:
            raise WrongUsage("JOBWIRE_URL and JOBWIRE_STORE are both set: unset one, or give --url or --store")
        if "JOBWIRE_URL" in os.environ:
            return None
    profiles = find(Path.cwd())
    if store is None:
        return None if profiles is None or profiles.default is None else profiles.url_of(profiles.default)
    if profiles is None:
        raise WrongUsage(f"there is no {FILE} here or in a folder above, so there is no store {store!r}")
    return profiles.url_of(store)


def find(folder: Path) -> Profiles | None:
    """Returns the profiles of the nearest file, from the folder upwards."""
    try:
        found = settings_file.nearest(folder)
    except InvalidOption as error:
        raise WrongUsage(f"{error.value} is not valid TOML: {error.__cause__}") from None
    return None if found is None else _profiles(found.file, found.values)


def _profiles(file: Path, section: dict[str, Any]) -> Profiles:
    for key in section:
        if key not in KEYS:
            near = spelling.closest(key, KEYS)
            hint = f"did you mean {near}?" if near else f"known are {', '.join(KEYS)}"
            raise WrongUsage(f"{file} has an unknown key {key!r}; {hint}")
    stores, default = section.get("stores", {}), section.get("store")
    if not isinstance(stores, dict) or not all(isinstance(one, str) for one in cast("dict[str, Any]", stores).values()):
        raise WrongUsage(f'{file}: stores must be a table of names and URLs, such as prod = "bullmq+redis://host"')
    if default is not None and not isinstance(default, str):
        raise WrongUsage(f"{file}: store must be the name of a store")
    return Profiles(file, cast("dict[str, str]", stores), default)


def expanded(template: str, what: str) -> str:
    """Returns the text with the variables of the environment in the place of `${NAME}`.

    >>> os.environ["EXAMPLE_SECRET"] = "p@ss/word"
    >>> expanded("bullmq+redis://app:${EXAMPLE_SECRET}@host/0", "store 'prod'")
    'bullmq+redis://app:p%40ss%2Fword@host/0'
    """
    start, end = _user_part(template)
    query = template.find("?", end)

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if not _NAME.fullmatch(name):
            raise WrongUsage(f"{what} has a variable without a valid name: {found[0]!r}")
        given = os.environ.get(name)
        if not given:
            state = "empty" if name in os.environ else "not set"
            raise WrongUsage(f"{what} needs the environment variable {name}, which is {state}")
        of_option = 0 <= query < found.start() and template[found.start() - 1] == "="
        return quote(given, safe="") if of_option or start <= found.start() < end else given

    return _VARIABLE.sub(value, template)


def _user_part(template: str) -> tuple[int, int]:
    """Returns where user name and password begin and end in the text of a URL."""
    _, slashes, rest = template.partition("://")
    authority = re.split(r"[/?]", rest, maxsplit=1)[0]
    start = len(template) - len(rest)
    return (start, start + authority.rfind("@")) if slashes and "@" in authority else (0, 0)
