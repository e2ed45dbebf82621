"""Finds the values that follow a name in a text: `name: value`, `name=value`, `"name": {…}`, `name=Type(…)`.

Texts are errors, logs and the beginnings of stored JSON: quotes may be escaped, brackets may be open at the end, and
nothing can be parsed as a whole. Each character is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

_LONGEST_NAME = 200
_SEPARATOR = re.compile(r"=>|:=|[:=]")
_SPACE = re.compile(r"\s{0,3}")
_WORD = re.compile(r"[\w.$-]++")
_QUOTE = re.compile(r"""(?<!\\)(\\*+)(["'])""")
_SCHEME = re.compile(r"(?:bearer|basic|digest)\s+\S+", re.IGNORECASE)
_PREFIX = re.compile(r"[bruf]{1,2}(?=[\"'])", re.IGNORECASE)
_OPEN, _CLOSE = "[{(", "]})"
_ENDS = frozenset(",;&" + _CLOSE)
_IN_BRACKETS = re.compile(r"""[\[{(\]})]|(?:(?<![\w\\])|(?<=\b[bruf]))\\*+["']""", re.IGNORECASE)
_MORE_PAIRS = re.compile(r"(?:;\s?[\w.$-]++=[^\s;,]*+)++")


class Found(NamedTuple):
    """Positions in the text: the beginning of the name, the beginning and the end of its value."""

    name: int
    begin: int
    end: int


def values_after(text: str, hides: Callable[[str], bool]) -> Iterator[Found]:
    """Yields the values that follow a name for which `hides` is true, from left to right."""
    at = 0
    while (separator := _SEPARATOR.search(text, at)) is not None:
        at = separator.end()
        name, begins = _name_before(text, separator.start())
        if not name or not hides(name):
            continue
        space = _SPACE.match(text, at)
        begin = space.end() if space is not None else at
        end = _end_of_value(text, begin)
        if end > begin:
            yield Found(begins, begin, end)
            at = end


def _name_before(text: str, end: int) -> tuple[str, int]:
    """Returns the name that ends here, in quotes or not, and where it begins."""
    start = max(0, end - _LONGEST_NAME)
    head = text[start:end].rstrip().removesuffix("]")
    if head[-1:] in ('"', "'"):
        body = head[:-1].rstrip("\\")
        opening = body.rfind(head[-1])
        return body[opening + 1 :], start + opening + 1
    word = _WORD.match(head[::-1])  # from the end, so that nothing before the word is read
    length = word.end() if word is not None else 0
    return head[len(head) - length :], start + len(head) - length


def _end_of_value(text: str, begin: int) -> int:
    """Returns where a value ends: a quoted one with its quote, one in brackets with the bracket that closes it."""
    if (quote := _QUOTE.match(text, begin)) is not None:
        return _end_of_quoted(text, quote)
    if (scheme := _SCHEME.match(text, begin)) is not None:
        return scheme.end()
    if (prefix := _PREFIX.match(text, begin)) is not None and (quote := _QUOTE.match(text, prefix.end())) is not None:
        return _end_of_quoted(text, quote)
    if text[begin : begin + 1] in tuple(_OPEN):
        return _end_of_brackets(text, begin)
    at = begin
    while at < len(text) and text[at] not in _ENDS and not text[at].isspace():
        at = _end_of_brackets(text, at) if text[at] in _OPEN else at + 1
    if "=" in text[begin:at] and (more := _MORE_PAIRS.match(text, at)) is not None:
        return more.end()  # a cookie is several pairs
    return at


def _end_of_quoted(text: str, opening: re.Match[str]) -> int:
    """Returns where a quoted text ends. In JSON inside of JSON the quote has backslashes before it, and a quote that
    belongs to the text has more of them."""
    depth, mark = len(opening[1]), opening[2]
    for quote in _QUOTE.finditer(text, opening.end()):
        slashes = len(quote[1])
        if quote[2] == mark and (slashes < depth or slashes % (2 * (depth + 1)) == depth):
            return quote.end()
    return len(text)


def _end_of_brackets(text: str, begin: int) -> int:
    """Returns where the bracket is closed that opens here, or the end of the text. Brackets in quotes don't count."""
    depth, at = 0, begin
    while (found := _IN_BRACKETS.search(text, at)) is not None:
        at = found.end()
        if found.group() in _OPEN:
            depth += 1
        elif found.group() in _CLOSE:
            depth -= 1
            if depth == 0:
                return at
        elif (quote := _QUOTE.match(text, found.start())) is not None:
            at = _end_of_quoted(text, quote)
    return len(text)
