"""Message templates: texts with parameters in braces.

`{product}` is replaced by the campaign's parameter of that name, `{username}` and `{category}` by those of the channel;
`{{` and `}}` are single braces. All errors are found when a template or a campaign is created: a brace without its
partner, a parameter without a value, a value without a parameter, a text that is too long.

Telegram counts the length of a text in UTF-16 units, so most emoji count twice: 4,096 for a text, 1,024 for the caption
of a photo, a video or a document.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from jobwire import checks
from jobwire.errors import InvalidOption
from jobwire.spelling import closest

MEDIA_TYPES = ("PHOTO", "VIDEO", "DOCUMENT")
OF_CHANNEL = ("username", "category")
"""The parameters that each channel fills by itself."""
TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL = re.compile(r"https?://\S+")


def utf16_length(text: str) -> int:
    """Returns the length of a text as Telegram counts it.

    >>> utf16_length("tea"), utf16_length("🍵")
    (3, 2)
    """
    return len(text) + sum(character > "\uffff" for character in text)


@dataclass(frozen=True, slots=True)
class MessageTemplate:
    """A text with parameters, perhaps with media. Checked when it is made.

    Examples:
        >>> template = MessageTemplate("Hello {username}, {product} is {{new}}")
        >>> template.names
        ('username', 'product')
        >>> template.render({"product": "Tea"}, {"username": "@news"})
        'Hello @news, Tea is {new}'
    """

    content: str
    media_type: str | None = None
    media_url: str | None = None
    names: tuple[str, ...] = field(init=False)
    """The parameters, in the order of their first use."""
    _parts: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        content = checks.maybe_empty("content", self.content)
        if "\0" in content:
            raise InvalidOption("content", content, "must not contain NUL characters")
        parts = _parse(content)
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "names", tuple(dict.fromkeys(name for _, name in parts if name)))
        self._check_media()
        if not content.strip() and self.media_url is None:
            raise InvalidOption("content", content, "must not be empty without media")
        self._check_length(sum(utf16_length(text) for text, _ in parts))

    @property
    def limit(self) -> int:
        """The most UTF-16 units of a message."""
        return TEXT_LIMIT if self.media_url is None else CAPTION_LIMIT

    def uses(self, name: str) -> int:
        """Returns how often a parameter occurs."""
        return sum(used == name for _, used in self._parts)

    def check_params(self, params: Mapping[str, Any], longest_of_channels: int = 0) -> dict[str, Any]:
        """Returns the parameters of a campaign, as the database returns them. Refuses missing and unknown ones by name,
        values that are not text or numbers, and messages that would be too long: `longest_of_channels` is the length of
        what a channel fills in."""
        if not isinstance(params, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
            raise InvalidOption("params", params, "must be a mapping of names to values")
        needed = [name for name in self.names if name not in OF_CHANNEL]
        checked: dict[str, Any] = {}
        for name, value in params.items():
            if name in OF_CHANNEL:
                raise InvalidOption(f"params.{name}", value, "is filled in from each channel and can't be given")
            if name not in needed:
                near = closest(str(name), needed)
                hint = f"; did you mean {near}?" if near else f"; it has {', '.join(needed) or 'none'}"
                raise InvalidOption(f"params.{name}", value, f"is not a parameter of the template{hint}")
            checked[name] = _value(name, value)
        for name in needed:
            if name not in params:
                raise InvalidOption(f"params.{name}", None, "is missing: the template uses it")
        if self.media_url is None and len(needed) == len(self.names):
            text = self.render(checked, {})
            if not text.strip():
                raise InvalidOption("content", self.content, "would be an empty text with these parameters")
        length = sum(utf16_length(text) + (utf16_length(str(checked[name])) if name in needed else 0)
                     for text, name in self._parts)  # fmt: skip
        self._check_length(length + longest_of_channels)
        return checked

    def render(self, params: Mapping[str, Any], channel: Mapping[str, str | None]) -> str:
        """Returns the text for one channel, given by its `username` and `category`."""
        return "".join(
            text + ("" if not name else (channel.get(name) or "") if name in OF_CHANNEL else str(params[name]))
            for text, name in self._parts
        )

    def _check_media(self) -> None:
        if (self.media_type is None) != (self.media_url is None):
            missing = "media_url" if self.media_url is None else "media_type"
            raise InvalidOption(missing, None, "is needed: a media type and a media URL are given together")
        if self.media_type is not None and self.media_type not in MEDIA_TYPES:
            raise InvalidOption("media_type", self.media_type, f"must be one of {', '.join(MEDIA_TYPES)}")
        if self.media_url is not None and not _URL.fullmatch(checks.text("media_url", self.media_url)):
            raise InvalidOption("media_url", self.media_url, "must be an http or https URL")

    def _check_length(self, length: int) -> None:
        if length > self.limit:
            what = "text" if self.media_url is None else "caption of media"
            rule = f"would be a {what} of {length:,} characters; Telegram takes at most {self.limit:,}"
            raise InvalidOption("content", self.content, rule)


def _parse(content: str) -> tuple[tuple[str, str], ...]:
    """Returns pairs of a literal text and the name of the parameter after it, which is empty in the last pair."""
    parts: list[tuple[str, str]] = []
    literal = ""
    end = 0
    for found in _TOKEN.finditer(content):
        literal += content[end : found.start()]
        end = found.end()
        token = found.group()
        if token in ("{{", "}}"):
            literal += token[0]
        elif found.group(1) is None:
            rule = f"has a single {token} at character {found.start() + 1}: write {token}{token} for a brace"
            raise InvalidOption("content", content, rule)
        elif not _NAME.fullmatch(found.group(1)):
            rule = f"has {token} at character {found.start() + 1}, which is not the name of a parameter"
            raise InvalidOption("content", content, rule)
        else:
            parts.append((literal, found.group(1)))
            literal = ""
    return (*parts, (literal + content[end:], ""))


def _value(name: str, value: Any) -> str | int | float:
    """Returns the value of a parameter as the database returns it: JSON there has no exponents, so that 1e300 is a
    number of 301 digits."""
    if isinstance(value, str):
        checks.maybe_empty(f"params.{name}", value)
        if "\0" in value:
            raise InvalidOption(f"params.{name}", value, "must not contain NUL characters")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidOption(f"params.{name}", value, "must be a text or a number")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidOption(f"params.{name}", value, "must be a finite number")
        written = format(Decimal(repr(value)), "f")
        return float(written) if "." in written else int(written)
    if abs(value) >= 10**TEXT_LIMIT:
        raise InvalidOption(f"params.{name}", hex(value), f"must have at most {TEXT_LIMIT:,} digits")
    return value
