"""JSON values as they are shown: a tree of bounded size, or one short line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from jobwire.counted import counted

MOST_NODES = 600
LONGEST_TEXT = 4000
_DEEPEST = 12
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


def tree(value: Any, label: str = "") -> Node:
    """Returns the value as a tree of at most MOST_NODES nodes, with notes on what was left out."""
    budget = [MOST_NODES]
    return _node(label, value, 0, budget)


def _node(label: str, value: Any, depth: int, budget: list[int]) -> Node:
    budget[0] -= 1
    if not isinstance(value, (dict, list)):
        return _leaf(label, value)
    kind = "object" if isinstance(value, dict) else "array"
    items = _items(cast("dict[str, Any] | list[Any]", value))
    size = len(cast("dict[str, Any] | list[Any]", value))
    if depth >= _DEEPEST:
        return Node(label, "text", brief(value, LONGEST_TEXT))
    children: list[Node] = []
    for name, inner in items:
        if budget[0] <= 0:
            break
        children.append(_node(name, inner, depth + 1, budget))
    left = size - len(children)
    note = counted(size, "field" if kind == "object" else "item") + (f", {left:,} of them not shown" if left else "")
    return Node(label, kind, note=note, children=tuple(children), is_open=depth < _OPEN and size <= 40)


def _items(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((str(name)[:200], inner) for name, inner in value.items())
    else:
        yield from ((str(index), inner) for index, inner in enumerate(value))


def _leaf(label: str, value: Any) -> Node:
    if isinstance(value, str):
        return Node(label, "text", *capped(value))
    if value is None or isinstance(value, bool):
        return Node(label, "word", json.dumps(value))
    return Node(label, "number", *capped(str(value)))


def named(queue: str) -> str:
    """Returns the name of a queue for a title or a sentence, cut if it is very long.

    >>> named("mail"), len(named("q" * 500))
    ('mail', 60)
    """
    return queue if len(queue) <= 60 else f"{queue[:59]}…"


def capped(text: str, longest: int = LONGEST_TEXT) -> tuple[str, str]:
    """Returns the beginning of a text, and a note on what was left out.

    >>> capped("abcdef", 4)
    ('abcd', '2 more characters')
    """
    left = len(text) - longest
    return (text, "") if left <= 0 else (text[:longest], counted(left, "more character"))


def brief(value: Any, longest: int = 120) -> str:
    """Returns the beginning of a value as one line of JSON. Reads no more of it than is shown.

    >>> brief({"to": "a@example.com", "n": [1, 2, 3]}), brief(list(range(1000)), 12)
    ('{"to": "a@example.com", "n": [1, 2, 3]}', '[0, 1, 2, 3…')
    """
    parts: list[str] = []
    size = 0
    for part in _pieces(value, longest, 0):
        parts.append(part)
        size += len(part)
        if size > longest:
            return "".join(parts)[: longest - 1] + "…"
    return "".join(parts)


def _pieces(value: Any, longest: int, depth: int) -> Iterator[str]:
    if depth > 40:
        yield "…"
    elif isinstance(value, dict):
        yield "{"
        for index, (name, inner) in enumerate(cast("dict[str, Any]", value).items()):
            yield ", " if index else ""
            yield f"{json.dumps(str(name)[:longest], ensure_ascii=False)}: "
            yield from _pieces(inner, longest, depth + 1)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for index, inner in enumerate(cast("list[Any]", value)):
            yield ", " if index else ""
            yield from _pieces(inner, longest, depth + 1)
        yield "]"
    elif isinstance(value, str):
        yield json.dumps(value[: longest + 1], ensure_ascii=False)
    else:
        yield json.dumps(value, default=str)
