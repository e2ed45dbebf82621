"""The URL of a store: `protocol+transport://…`.

>>> address = parse("bullmq+redis://app:secret@cache.example:6379/2?prefix=mail&socket_timeout=5")
>>> address
<Address bullmq+redis://app:***@cache.example:6379/2?prefix=mail&socket_timeout=5>
>>> address.protocol, address.transport, address.options
('bullmq', 'redis', {'prefix': 'mail'})

What follows the first `+` is the driver's own URL with the driver's options; jobwire's options are removed from it.
Three transports have no such URL:

* `cluster` and `sentinel` list several hosts: `bullmq+cluster://h1:7000,h2:7001/?prefix={bull}`,
  `bullmq+sentinel://h1:26379,h2:26379/service/0`; `?tls=true` turns TLS on for both. All are in `hosts`, and
  `driver_url` is a `redis://` or `rediss://` URL of the first one, with the credentials and the options. User and
  password are the server's; the sentinels' own are `?sentinel_username=&sentinel_password=`, and `?sentinel_tls=true`
  turns TLS on for them.
* `embedded` names a folder: `pgboss+embedded:` (`./.jobwire`), `pgboss+embedded:./here`, `pgboss+embedded:///srv/here`.

Together with a client of redis-py, a URL has only a protocol and its options: `bullmq:?prefix=mail`.

`memory:` and `memory:name` are queues inside this process; with `?like=pgboss` they refuse what pg-boss refuses. In a
user name or a password the characters `@ : / ? # %` must be percent-encoded. Passwords are in `driver_url` and nowhere
else: not in a repr, not in an error.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from jobwire.errors import InvalidOption
from jobwire.protocols import PROTOCOLS
from jobwire.redact import redact_url
from jobwire.url_options import Fault, UnknownOption, decoded, own_options, split_options, unknown_option

DEFAULT_URL = "bullmq+embedded:"
DEFAULT_FOLDER = Path(".jobwire")

_TRANSPORTS = {one.slug: one.transports for one in PROTOCOLS.values()}
_TAKE_CLIENTS = tuple(one.slug for one in PROTOCOLS.values() if one.takes_client)
_CLIENT_URLS = "write 'bullmq:' or 'bridgemq:', with options as in 'bullmq:?prefix=mail'"
_MANY_HOSTS = {"cluster": 6379, "sentinel": 26379}
_BARE_DRIVERS = {"postgres": "postgresql", "unix": "redis"}

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*)(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """A parsed URL. `str()` and `repr()` show it without its passwords."""

    protocol: str
    transport: str
    redacted: str
    """The URL as it was given, with `***` for every password."""
    driver_url: str = ""
    """The driver's URL, with passwords. Empty for embedded and memory."""
    options: dict[str, str] = field(default_factory=dict[str, str], hash=False)
    """jobwire's own options, such as prefix, namespace, collection or schema."""
    hosts: tuple[tuple[str, int], ...] = ()
    """The hosts of a cluster or of sentinels."""
    service: str = ""
    """The name under which sentinels watch the server."""
    folder: Path | None = None
    """The folder of an embedded server."""
    name: str = ""
    """The name of an in-process store."""
    client: Any = field(default=None, hash=False)
    """Settings copied from a driver's client, instead of `driver_url`. Only the backend reads them."""

    def __str__(self) -> str:
        return self.redacted

    def __repr__(self) -> str:
        return f"<Address {self.redacted}>"


def default_url() -> str:
    """Returns JOBWIRE_URL, or the URL of an embedded server in ./.jobwire if the variable is not set."""
    url = os.environ.get("JOBWIRE_URL", DEFAULT_URL)
    if not url.strip():
        # Usually a missing secret: jobs in a local folder would be lost with the container.
        raise InvalidOption(
            "JOBWIRE_URL", url, "is set but empty: give it a URL, or unset it for a server in ./.jobwire"
        )
    return url


def parse(url: str) -> Address:
    """Parses a jobwire URL.

    >>> parse("redis://127.0.0.1")
    Traceback (most recent call last):
        ...
    jobwire.errors.InvalidOption: url: say which protocol: bullmq+redis or bridgemq+redis (got 'redis://127.0.0.1')
    """
    given: Any = url
    if not isinstance(given, str):
        raise InvalidOption("url", type(given).__name__, f"must be a string such as {DEFAULT_URL!r}")
    try:
        return _address(given)
    except Fault as fault:
        error = _refused(redact_url(given), fault)
    raise error


def parse_without_address(url: str | None) -> Address:
    """Parses a URL with only a protocol and options. The address comes from a driver's client.

    >>> address = parse_without_address("bullmq:?prefix=mail")
    >>> address.protocol, address.options
    ('bullmq', {'prefix': 'mail'})
    """
    given: Any = url
    if not isinstance(given, str):
        shown = None if given is None else type(given).__name__
        raise InvalidOption("url", shown, f"must name the protocol beside a client: {_CLIENT_URLS}")
    try:
        return _protocol_and_options(given)
    except Fault as fault:
        error = _refused(redact_url(given), fault)
    raise error


def _protocol_and_options(url: str) -> Address:
    scheme, _, rest = url.partition(":")
    protocol = scheme.lower()
    if protocol not in _TRANSPORTS:
        protocol, _ = _protocol_and_transport(protocol)
    if protocol not in _TAKE_CLIENTS:
        takers = " and ".join(_TAKE_CLIENTS)
        raise InvalidOption("client", protocol, f"is for the protocols on Redis, {takers}: give {protocol} a URL alone")
    path, _, query = rest.partition("?")
    if scheme.lower() != protocol or path or ":" not in url:
        raise Fault(f"must have no address beside a client, which has one: {_CLIENT_URLS}")
    _check_characters(url)
    options, _ = split_options(protocol, "", query)
    return Address(protocol, "", redact_url(url), options=options)


def _address(url: str) -> Address:
    scheme, colon, rest = url.partition(":")
    scheme = scheme.lower()
    if not colon or not _SCHEME.fullmatch(scheme):
        raise Fault(f"must start with a protocol and a transport, such as {DEFAULT_URL!r} or 'bullmq+redis://'")
    protocol, transport = _protocol_and_transport(scheme)
    _check_characters(url)
    redacted = redact_url(url)
    if protocol == "memory" or transport == "embedded":
        return _local_address(protocol, transport, rest, redacted)
    if not rest.startswith("//"):
        raise Fault(f"must go on with //: {scheme}://…")
    authority, path, query = _split(rest[2:])
    if "@" in path or "@" in query or authority.count("@") > 1:
        raise Fault("percent-encode the user name and the password: @ is %40, / is %2F, ? is %3F")
    user, at, host_list = authority.rpartition("@")
    hosts = [_host(one) for one in host_list.split(",")]
    options, driver_query = split_options(protocol, transport, query)
    tail = f"?{driver_query}" if driver_query else ""
    if transport not in _MANY_HOSTS:
        if transport in ("redis", "rediss"):
            if len(hosts) > 1:
                raise Fault(f"has several hosts: use {protocol}+cluster or {protocol}+sentinel")
            _database(path.removeprefix("/"))
        return Address(protocol, transport, redacted, f"{transport}://{authority}{path}{tail}", options)
    if not all(host for host, _ in hosts):
        raise Fault(f"must list the hosts: {scheme}://h1:{_MANY_HOSTS[transport]},h2:{_MANY_HOSTS[transport]}/")
    nodes = tuple((host.strip("[]"), port or _MANY_HOSTS[transport]) for host, port in hosts)
    service, database = _service_and_database(transport, path)
    driver = "rediss" if options.pop("tls", "false") == "true" else "redis"
    driver_url = f"{driver}://{user}{at}{hosts[0][0]}:{nodes[0][1]}/{database}{tail}"
    return Address(protocol, transport, redacted, driver_url, options, nodes, service)


def _check_characters(url: str) -> None:
    if re.search(r"[\s\x00-\x1f\x7f]", url):
        raise Fault("must have no spaces or control characters; percent-encode them")
    if "#" in url:
        raise Fault("must have no '#'; percent-encode it as %23")


def _protocol_and_transport(scheme: str) -> tuple[str, str]:
    protocol, _, transport = scheme.partition("+")
    known = _TRANSPORTS.get(protocol)
    if known is not None and (transport in known or scheme == "memory"):
        return protocol, transport
    if known is not None:
        choices = ", ".join(f"{protocol}+{one}" for one in known) or "memory: alone"
        alone = f"; {protocol}: alone needs a client" if scheme in _TAKE_CLIENTS else ""
        raise Fault(
            f"{protocol} has the transports {choices}{alone}" if known else f"write {choices}, it has no transports"
        )
    driver = _BARE_DRIVERS.get(scheme, scheme)
    speakers = [f"{one}+{driver}" for one, transports in _TRANSPORTS.items() if driver in transports]
    if speakers:
        raise Fault(f"say which protocol: {' or '.join(speakers)}")
    everything = ["memory", *(f"{one}+{each}" for one, transports in _TRANSPORTS.items() for each in transports)]
    near = difflib.get_close_matches(scheme, everything, n=1) or difflib.get_close_matches(protocol, _TRANSPORTS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise Fault(f"unknown protocol; known are {', '.join(_TRANSPORTS)}{hint}")


def _local_address(protocol: str, transport: str, rest: str, redacted: str) -> Address:
    path, _, query = rest.partition("?")
    if protocol == "memory":
        if path.startswith("/"):
            raise Fault("write memory: or memory:name")
        options, _ = split_options(protocol, transport, query)
        return Address(protocol, transport, redacted, options=options, name=decoded(path))
    if path.startswith("//") and not path.startswith("///"):
        raise Fault(f"embedded takes a folder: {protocol}+embedded:./folder or {protocol}+embedded:///folder")
    folder = Path(decoded(path.removeprefix("//"))) if path else DEFAULT_FOLDER
    options, _ = split_options(protocol, transport, query)
    return Address(protocol, transport, redacted, options=options, folder=folder)


def _split(rest: str) -> tuple[str, str, str]:
    before, _, query = rest.partition("?")
    authority, slash, path = before.partition("/")
    return authority, slash + path, query


def _host(text: str) -> tuple[str, int | None]:
    found = _HOST.fullmatch(text)
    if found is None or (found[2] and not 0 < int(found[2]) < 65_536):
        raise Fault("must name each host as host or host:port; percent-encode user name and password")
    return found[1], int(found[2]) if found[2] else None


def _database(text: str) -> str:
    if text and not re.fullmatch("[0-9]{1,9}", text):
        raise Fault("must end with the number of a database, such as /0")
    return text


def _service_and_database(transport: str, path: str) -> tuple[str, str]:
    if transport == "cluster":
        if path not in ("", "/", "/0"):
            raise Fault("a cluster has database 0 only")
        return "", "0"
    service, _, database = path.removeprefix("/").partition("/")
    if not service:
        raise Fault("must name the service that the sentinels watch: …/service/0")
    return decoded(service), _database(database) or "0"


def check_driver_options(address: Address, known: Collection[str], *, ignore_case: bool = False) -> None:
    """Refuses URL options that the driver does not have. Backends call it with the names in `known`."""
    for pair in filter(None, address.driver_url.partition("?")[2].split("&")):
        key = unquote(pair.partition("=")[0])
        if (key.lower() if ignore_case else key) not in known:
            own = own_options(address.protocol, address.transport)
            raise _refused(address.redacted, unknown_option(key, [*own, *sorted(known)], address.protocol))


def _refused(redacted: str, fault: Fault) -> InvalidOption:
    if isinstance(fault, UnknownOption):
        address, mark, query = redacted.partition("?")
        redacted = address + mark + re.sub("=[^&]*", "=***", query)
    return InvalidOption("url", redacted, str(fault))
