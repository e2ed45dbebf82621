"""Turns a URL into an address that any process can reach, and into the name that the tables have for the store."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import quote

from jobwire import urls
from jobwire.errors import InvalidOption
from jobwire.pipeline.stores.dialect import dialect_of
from jobwire.urls import Address


def checked(url: str) -> Address:
    """Returns the address of a store that the pipeline can read."""
    return shared(urls.parse(url))


def shared(address: Address) -> Address:
    """Returns the address of a store that other processes can reach, and refuses any other."""
    if address.protocol == "memory":
        rule = "must be a store that other processes can reach: memory: is inside this one"
        raise InvalidOption("url", address.redacted, rule)
    return address


@contextmanager
def reached(url: str) -> Generator[str]:
    """Yields a URL that every process of this machine can use inside the block: an embedded server is started or
    joined."""
    address = checked(url)
    if address.folder is None:
        yield url
        return
    with dialect_of(address.protocol).server(address.folder) as server:
        options = "&".join(f"{name}={quote(value)}" for name, value in address.options.items())
        joint = "&" if "?" in server.url else "?"
        yield f"{address.protocol}+{server.url}{joint + options if options else ''}"


def store_name(url: str) -> str:
    """Returns the content of the column `store`: the same for every spelling of the URL of one store and every login.

    >>> store_name("bullmq+redis://app:secret@cache.example:6379/2?prefix=mail&socket_timeout=5")
    'bullmq+redis://cache.example:6379/2?prefix=mail'
    """
    return name_of(urls.parse(url))


def name_of(address: Address) -> str:
    """Returns the content of the column `store` for the store at an address."""
    shared(address)
    options = "&".join(f"{name}={value}" for name, value in sorted(address.options.items()))
    if address.folder is not None:
        where = f"{address.protocol}+embedded:{address.folder.resolve()}"
    else:
        where = re.sub(r"//[^/@]*@", "//", address.redacted.partition("?")[0])
    return f"{where}?{options}" if options else where
