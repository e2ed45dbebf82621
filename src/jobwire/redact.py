"""Removes passwords from URLs and texts, so that they reach neither logs nor errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Lengths are limited so that a search through a long text stays linear. A name with % in it may be any name.
_SECRET = r"(?:passw(?:or)?d|passphrase|secret|token|authmechanismproperties|%)[\w.%-]{0,40}"  # noqa: S105 names only
_SECRET_IN_URL = re.compile(rf"(?i){_SECRET}=([^&]*)")
_SECRET_IN_TEXT = re.compile(rf"(?i)({_SECRET}\s?=\s?)(?:'(?:[^'\\]|\\.)*'|[^\s&]+)")
_URL_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://\S+")


def redact(text: str) -> str:
    """Returns the text with `***` for the password of every URL in it and for every `password=…`.

    >>> redact("no answer from redis://:hunter2@10.0.0.7:6379/0")
    'no answer from redis://:***@10.0.0.7:6379/0'
    """
    if "://" in text:
        text = _URL_IN_TEXT.sub(lambda found: redact_url(found.group()), text)
    return _SECRET_IN_TEXT.sub(r"\1***", text) if "=" in text else text


def redact_url(url: str) -> str:
    """Returns the URL with `***` for its passwords. It masks too much rather than too little, since a password may
    contain any character, also one that should be encoded."""
    spans = [found.span(1) for found in _SECRET_IN_URL.finditer(url)]
    scheme, _, rest = url.partition(":")
    body = len(scheme) + 3 if rest.startswith("//") else 0
    at = url.rfind("@")
    if at >= body:
        colon = url.find(":", body, at)
        # A slash before the @ belongs to the password, unless that @ ends credentials that were found already.
        if colon >= 0 or not body or ("/" in url[body:at] and not any(start <= at < stop for start, stop in spans)):
            spans.append((colon + 1 if colon >= 0 else body, at))
    shown: list[str] = []
    end = 0
    for start, stop in _merged(spans):
        shown += url[end:start], "***"
        end = stop
    return "".join(shown) + url[end:]


def _merged(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    current: tuple[int, int] | None = None
    for span in sorted(spans):
        if current is None or span[0] > current[1]:
            if current is not None:
                yield current
            current = span
        else:
            current = (current[0], max(current[1], span[1]))
    if current is not None:
        yield current
