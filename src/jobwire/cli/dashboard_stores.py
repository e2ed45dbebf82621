"""The stores of a dashboard, with their names: those of profiles, and those of URLs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from jobwire import urls
from jobwire.campaigns.addresses import is_database
from jobwire.cli.exit_codes import WrongUsage
from jobwire.cli.profiles import FILE, find, located

CAMPAIGNS = "JOBWIRE_CAMPAIGN_URL"


def chosen_stores(stores: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Returns the URLs by name. Without any: all stores of the nearest file, or else the one that other commands use.

    A store that is given by its URL has the name of its protocol, with a number if there are several; a database of
    campaigns, which has a plain URL of PostgreSQL, is called so.
    """
    chosen: dict[str, str] = {}
    profiles = find(Path.cwd())
    for name in stores:
        if profiles is None:
            raise WrongUsage(f"there is no {FILE} here or in a folder above, so there is no store {name!r}")
        chosen[name] = profiles.url_of(name)
    for url in given:
        _add(chosen, url)
    if chosen:
        return chosen
    if CAMPAIGNS in os.environ:
        if not os.environ[CAMPAIGNS]:
            raise WrongUsage(f"{CAMPAIGNS} is set but empty: give it the URL of a database, or unset it")
        _add(chosen, os.environ[CAMPAIGNS])
    named = {"JOBWIRE_URL", "JOBWIRE_STORE"} & os.environ.keys()
    if profiles is not None and profiles.stores and not named:
        return chosen | {name: profiles.url_of(name) for name in profiles.stores}
    if named or not chosen:
        _add(chosen, located(None, None) or urls.default_url())
    return chosen


def _add(chosen: dict[str, str], url: str) -> None:
    name = kind = "campaigns" if is_database(url) else urls.parse(url).protocol
    number = 1
    while name in chosen:
        number += 1
        name = f"{kind}-{number}"
    chosen[name] = url
