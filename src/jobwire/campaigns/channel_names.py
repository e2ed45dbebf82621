"""Usernames of channels: `name`, `@name` and links to Telegram are stored as `@name`."""

from __future__ import annotations

import re

_LINK = re.compile(r"(?:https?://)?(?:www\.)?(?:t|telegram)\.me/(?:s/)?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{3,31}")


def username_of(text: str) -> str:
    """Returns a username as it is stored. Raises ValueError with the reason if the text is not one.

    >>> [username_of(text) for text in ("news", " @News ", "https://t.me/news/", "t.me/s/news?before=3")]
    ['@news', '@News', '@news', '@news']
    >>> username_of("t.me/+AbCdEf123")
    Traceback (most recent call last):
        ...
    ValueError: is an invitation link; a username is needed
    """
    name = text.strip()
    link = _LINK.match(name)
    if link is not None:
        name = re.split(r"[/?#]", name[link.end() :], maxsplit=1)[0]
        if name.startswith("+") or name.lower() == "joinchat":
            raise ValueError("is an invitation link; a username is needed")
        if name.lower() == "c":
            raise ValueError("is a link to a private channel; a username is needed")
    name = name.removeprefix("@")
    if _NAME.fullmatch(name):
        return f"@{name}"
    if not name:
        raise ValueError("is empty")
    if not re.fullmatch(r"[A-Za-z0-9_]+", name):
        raise ValueError("may have only the letters a to z, digits and underscores")
    if not 4 <= len(name) <= 32:
        raise ValueError("must have 4 to 32 characters")
    raise ValueError("must begin with a letter")


def is_username(text: str) -> bool:
    """Returns whether a text is a username as it is stored. Those of adopted channels that are inactive may not be.

    >>> is_username("@news"), is_username("news")
    (True, False)
    """
    return text.startswith("@") and _NAME.fullmatch(text[1:]) is not None
