"""Finds a transport by its address: `outbox:./out.jsonl`, `webhook:https://…`, `telegram:`, or a name of another
package.

An address is `name:rest?option=value`. The rest is given to the parameter `address` of the transport's class, and each
option to the parameter of its name. An option that the address does not have is read from the environment variable
`NAME_OPTION`. A parameter whose name shows that it holds a secret is read from the environment only, since addresses
appear in command lines and logs.

Other packages add transports through the entry point group `jobwire.campaigns.transports`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
from collections.abc import Mapping
from importlib import metadata
from typing import Any
from urllib.parse import unquote

from jobwire import checks
from jobwire.campaigns.transports.parameters import HIDDEN, arguments_of, option_names
from jobwire.campaigns.transports.transport import Transport
from jobwire.errors import InvalidOption, JobwireError
from jobwire.redact import redact
from jobwire.spelling import closest, unknown

GROUP = "jobwire.campaigns.transports"
DEFAULT = "outbox:outbox.jsonl"
_BUILT_IN = {
    "outbox": "jobwire.campaigns.transports.outbox:OutboxTransport",
    "webhook": "jobwire.campaigns.transports.webhook:WebhookTransport",
    "telegram": "jobwire.campaigns.transports.telegram:TelegramTransport",
}


def transport_of(address: str = DEFAULT, *, environment: Mapping[str, str] | None = None) -> Transport:
    """Returns the transport that an address names, not opened yet.

    >>> transport_of("outbox:./out.jsonl")
    <OutboxTransport out.jsonl>
    >>> transport_of("outbx:./out.jsonl")
    Traceback (most recent call last):
        ...
    jobwire.errors.InvalidOption: transport: is not known; did you mean outbox? (got 'outbx')
    """
    name, _, rest = checks.text("transport", address).partition(":")
    name = name.strip().lower()
    kind = _class_of(name)
    rest, options = _split(rest, name, kind)
    variables = os.environ if environment is None else environment
    found: Transport = kind(**arguments_of(kind, name, rest, options, variables))
    return found


def transport_names() -> list[str]:
    """Returns the names of the transports that are installed here."""
    return sorted({*_BUILT_IN, *(point.name for point in metadata.entry_points(group=GROUP))})


def _class_of(name: str) -> type[Any]:
    """Returns the class of a transport. jobwire's own names can't be taken by another package."""
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        found: type[Any] = getattr(importlib.import_module(module), attribute)
        return found
    points = list(metadata.entry_points(group=GROUP, name=name))
    if not points:
        known = transport_names()
        meant = closest(name, known)
        hint = f"did you mean {meant}?" if meant else f"known are {', '.join(known)}"
        raise InvalidOption("transport", name, f"is not known; {hint}")
    if len({point.value for point in points}) > 1:
        packages = ", ".join(sorted(f"{_package(point)} ({point.value})" for point in points))
        raise InvalidOption("transport", name, f"must be the name of one transport, and these have it: {packages}")
    return _loaded(points[0])


def _loaded(point: metadata.EntryPoint) -> type[Any]:
    where = f"transport {point.name} ({point.value} of {_package(point)})"
    try:
        found: Any = point.load()
    except Exception as error:
        raise JobwireError(f"{where} can't be imported: {type(error).__name__}: {redact(str(error))}") from error
    if not inspect.isclass(found) or not inspect.iscoroutinefunction(getattr(found, "send", None)):
        raise JobwireError(f"{where} must be a class with a method `async def send(self, message)`")
    return found


def _package(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unnamed package"


def _split(rest: str, name: str, kind: type[Any]) -> tuple[str, list[tuple[str, str]]]:
    """Returns the address without its options, and the options.

    The address of a class that declares `address_has_query` is a URL with a query of its own: only the options of the
    class are taken out of it. One that is nearly an option of the class is refused.
    """
    rest, _, query = rest.partition("?")
    own = option_names(kind)
    whole = not getattr(kind, "address_has_query", False)
    options: list[tuple[str, str]] = []
    others: list[str] = []
    for pair in filter(None, query.split("&")):
        key, _, value = pair.partition("=")
        if whole or unquote(key) in own:
            options.append((unquote(key), unquote(value)))
        elif difflib.get_close_matches(unquote(key).lower(), own, n=1, cutoff=0.8):
            raise unknown(unquote(key), HIDDEN, own, f"transport {name}")
        else:
            others.append(pair)
    if whole:
        return unquote(rest), options
    return rest + ("?" + "&".join(others) if others else ""), options
