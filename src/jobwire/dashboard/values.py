"""JSON values as they are shown: a tree of bounded size, or one short line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from jobwire.counted import counted
from jobwire.dashboard.redaction import HIDDEN, LONGEST_TEXT, Redaction

MOST_NODES = 600
MOST_TEXT, _SHORT_TEXT = 100_000, 100
"""Characters of all texts of a tree, and of one text after that."""
_DEEPEST = 12
_LONGEST_LABEL = 200
_MOST_INNER = 200
"""Fields or items of one container inside another, so that a long list leaves room for the fields after it."""
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that set the direction of the text after them."""
_OPEN = 2
"""Levels that are open at first."""


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a tree. `kind` is object, array, text, number or word (true, false, null)."""

    label: str
    kind: str
    text: str = ""
    note: str = ""
    children: tuple[Node, ...] = ()
    is_open: bool = False


class _Left:
    """The nodes and characters that a tree may still have."""

    def __init__(self) -> None:
        self.nodes = MOST_NODES
        self._text = MOST_TEXT

    def take(self, wanted: int) -> int:
        """Returns how long a text may be of which so many characters could be shown, and counts them."""
        longest = min(wanted, max(_SHORT_TEXT, min(LONGEST_TEXT, self._text)))
        self._text -= longest
        return longest


def tree(value: Any, hide: Redaction, label: str = "") -> Node:
    """Returns the value as a tree of at most MOST_NODES nodes, without secrets, with notes on what was left out.
    Reads no more of the value than is shown."""
    return _node(label, value, 0, _Left(), hide)


def _node(label: str, value: Any, depth: int, left: _Left, hide: Redaction) -> Node:
    left.nodes -= 1
    value = _plain(value)
    if not isinstance(value, (dict, list)):
        return _leaf(label, value, left, hide)
    kind = "object" if isinstance(value, dict) else "array"
    items = _items(cast("dict[Any, Any] | list[Any]", value))
    size = len(cast("dict[Any, Any] | list[Any]", value))
    if depth >= _DEEPEST:
        return Node(label, "text", brief(value, hide, left.take(LONGEST_TEXT)))
    children: list[Node] = []
    for name, inner in islice(items, _MOST_INNER if depth else None):
        if left.nodes <= 0:
            break
        if kind == "object" and hide.hides(name):
            left.nodes -= 1
            children.append(Node(name[:_LONGEST_LABEL], "text", HIDDEN))
        else:
            children.append(_node(name[:_LONGEST_LABEL], inner, depth + 1, left, hide))
    more = size - len(children)
    note = counted(size, "field" if kind == "object" else "item") + (f", {more:,} of them not shown" if more else "")
    return Node(label, kind, note=note, children=tuple(children), is_open=depth < _OPEN and size <= 40)


def _plain(value: Any) -> Any:
    """Returns containers that drivers use as those of JSON."""
    match value:
        case dict() | list() | str():
            return cast("Any", value)
        case Mapping():
            return dict(cast("Mapping[Any, Any]", value))
        case tuple() | set() | frozenset():
            return list(cast("Iterable[Any]", value))
        case bytes():
            return value[: LONGEST_TEXT * 4].decode("utf-8", "replace")
        case _:
            return value


def _items(value: dict[Any, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((str(name), inner) for name, inner in value.items())
    else:
        yield from ((str(index), inner) for index, inner in enumerate(value))


def _leaf(label: str, value: Any, left: _Left, hide: Redaction) -> Node:
    if value is None or isinstance(value, bool):
        return Node(label, "word", json.dumps(value))
    if isinstance(value, int | float):
        return Node(label, "number", *capped(str(value)))
    text = str(value)
    return Node(label, "text", *shown_text(text, hide, left.take(len(text))))


def shown_text(text: str, hide: Redaction, longest: int = LONGEST_TEXT) -> tuple[str, str]:
    """Returns the beginning of a text without secrets, and a note on what was left out."""
    return hide.text(text, longest), capped(text, longest)[1]


def visible(text: str) -> str:
    """Returns the text with characters escaped that would turn round what stands after them, such as numbers.

    >>> visible("mail\\u202e: 12 jobs wait")
    'mail\\\\u202e: 12 jobs wait'
    """
    return _TURNING.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def named(queue: str) -> str:
    """Returns the name of a queue for a title or a sentence, cut if it is very long.

    >>> named("mail"), len(named("q" * 500))
    ('mail', 60)
    """
    return visible(queue if len(queue) <= 60 else f"{queue[:59]}…")


def capped(text: str, longest: int = LONGEST_TEXT) -> tuple[str, str]:
    """Returns the beginning of a text, and a note on what was left out.

    >>> capped("abcdef", 4)
    ('abcd', '2 more characters')
    """
    left = len(text) - longest
    return visible(text[:longest]), counted(left, "more character") if left > 0 else ""


def brief(value: Any, hide: Redaction, longest: int = 120) -> str:
    """Returns the beginning of a value as one line of JSON, without secrets. Reads no more of it than is shown.

    >>> brief({"to": "a@example.com", "n": [1, 2, 3]}, Redaction()), brief(list(range(1000)), Redaction(), 12)
    ('{"to": "a@example.com", "n": [1, 2, 3]}', '[0, 1, 2, 3…')
    >>> brief({"user": "ann", "apiKey": "k-17", "nested": [{"Passwords": ["x", "y"]}]}, Redaction())
    '{"user": "ann", "apiKey": "(hidden)", "nested": [{"Passwords": "(hidden)"}]}'
    """
    parts: list[str] = []
    size = 0
    for part in _pieces(value, hide, longest, 0):
        parts.append(part)
        size += len(part)
        if size > longest:
            return "".join(parts)[: longest - 1] + "…"
    return "".join(parts)


def _pieces(value: Any, hide: Redaction, longest: int, depth: int) -> Iterator[str]:
    value = _plain(value)
    if depth > 40:
        yield "…"
    elif isinstance(value, dict):
        yield "{"
        for index, (name, inner) in enumerate(_items(cast("dict[Any, Any]", value))):
            yield ", " if index else ""
            yield f"{json.dumps(name[:longest], ensure_ascii=False)}: "
            yield from _pieces(HIDDEN if hide.hides(name) else inner, hide, longest, depth + 1)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for index, inner in enumerate(cast("list[Any]", value)):
            yield ", " if index else ""
            yield from _pieces(inner, hide, longest, depth + 1)
        yield "]"
    elif value is None or isinstance(value, bool | int | float):
        yield json.dumps(value)
    else:
        yield json.dumps(hide.text(str(value), longest + 1), ensure_ascii=False)
