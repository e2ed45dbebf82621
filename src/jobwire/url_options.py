"""The options in a URL: jobwire's own are checked and taken out, the driver's stay.

An option that neither has is refused with a suggestion. So is another protocol's option, and a misspelt one of ours: a
driver would ignore it, or raise a less helpful error.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from urllib.parse import unquote

from jobwire.protocols import PROTOCOLS, REDIS_TRANSPORTS
from jobwire.spelling import closest

SENTINELS_OWN = ("sentinel_username", "sentinel_password", "sentinel_tls")
"""Options for connecting to sentinels, which have credentials of their own. They stay in the driver's URL."""

_OPTIONS = {one.slug: one.url_options for one in PROTOCOLS.values()}
_WHERE = frozenset(one.url_options[0] for one in PROTOCOLS.values())
_PEERS_OPTIONS = {"j": "journal", "keyPrefix": "prefix", "database": "the path, as in /name"}
_FEW = 6
_SHOWN = 60
_HAVE_TLS = ("cluster", "sentinel")
_OPTION_RULES = {
    "prefix": (re.compile(r"[^\s\x00-\x1f\x7f]{1,200}"), "1 to 200 characters without spaces"),
    "namespace": (re.compile(r"[^\s\x00-\x1f\x7f]{1,200}"), "1 to 200 characters without spaces"),
    "collection": (re.compile(r"(?!system\.)[^$\x00]{1,120}"), "1 to 120 characters, no $, not starting with system."),
    "schema": (
        re.compile(r"""(?=.{1,50}$)(?:[A-Za-z_][A-Za-z0-9_]*|"[^"'%$.\\\x00-\x1f]+")""", re.ASCII),
        "letters, digits and _ without a leading digit, or a name in double quotes; 50 at most",
    ),
    "tz": (re.compile(r"[A-Za-z0-9_+/-]{1,64}"), "the name of a time zone, such as Europe/Berlin"),
    "max_retries": (re.compile("[1-9][0-9]{0,5}"), "a whole number of at least 1"),
    "like": (re.compile("|".join(one for one in PROTOCOLS if one != "memory")), "the name of a protocol, as pgboss"),
    "create_indexes": (re.compile("true|false"), "true or false"),
    "tls": (re.compile("true|false"), "true or false"),
}


class Fault(Exception):
    """Raised for a broken rule. `urls.parse` adds the URL without its passwords."""


class UnknownOption(Fault):
    """Raised for an option that does not exist. It may be a misspelt password, so no value is shown."""


def split_options(protocol: str, transport: str, query: str) -> tuple[dict[str, str], str]:
    """Returns jobwire's own options, checked, and the rest of the query string unchanged."""
    own = own_options(protocol, transport)
    ours: dict[str, str] = {}
    theirs: list[str] = []
    for pair in filter(None, query.split("&")):
        key, _, value = pair.partition("=")
        if key in own:
            if key in ours:
                raise Fault(f"gives {key} twice")
            ours[key] = _checked(key, decoded(value))
        elif key in SENTINELS_OWN and transport == "sentinel":
            if key == "sentinel_tls":
                _checked("tls", decoded(value))
            theirs.append(pair)
        elif transport in ("", "embedded") or key.startswith("sentinel_") or _is_meant_for_us(key, own, transport):
            raise unknown_option(key, own, protocol)
        else:
            theirs.append(pair)
    return ours, "&".join(theirs)


def own_options(protocol: str, transport: str) -> list[str]:
    """Returns the names of jobwire's options in such a URL."""
    own = _OPTIONS.get(protocol, ())
    return [*own, "tls"] if transport in _HAVE_TLS else list(own)


def unknown_option(key: str, known: Sequence[str], protocol: str) -> UnknownOption:
    """Returns the error for an option that neither jobwire nor the driver has."""
    meant = _PEERS_OPTIONS.get(key, "") or closest(key, known)
    own = _OPTIONS.get(protocol, ("",))[0]
    hint = f"did you mean {meant}?" if meant else f"{protocol} takes {own} and what its driver takes"
    if not meant and len(known) < _FEW:
        hint = f"{protocol} takes {', '.join(known) or 'none'}"
    return UnknownOption(f"has an unknown option {key[:_SHOWN]}; {hint}")


def _is_meant_for_us(key: str, own: list[str], transport: str) -> bool:
    """Returns True for another protocol's option and for a misspelt one of ours."""
    key = decoded(key).lower()
    ours = key in _WHERE or (key == "tls" and transport in REDIS_TRANSPORTS)
    return ours or bool(difflib.get_close_matches(key, own, n=1, cutoff=0.8))


def _checked(key: str, value: str) -> str:
    pattern, rule = _OPTION_RULES[key]
    if not pattern.fullmatch(value):
        raise Fault(f"{key} must be {rule}")
    return value


def decoded(text: str) -> str:
    """Returns a percent-encoded text decoded."""
    try:
        plain = unquote(text, errors="strict")
        plain.encode()
    except UnicodeError:
        raise Fault("must be UTF-8 where it is percent-encoded") from None
    if "\x00" in plain:
        raise Fault("must have no null character")
    return plain
