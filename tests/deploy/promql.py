"""Queries of Prometheus, taken apart by a real parser, against the samples of a real scrape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import promql_parser
from prometheus_client.samples import Sample

OF_PROMETHEUS = {"instance", "job"}
"""Labels that a scrape adds by itself."""
_SET_OPERATORS = {"unless", "and", "or"}


@dataclass(frozen=True)
class Matcher:
    label: str
    operator: str
    value: str

    def takes(self, sample: Sample) -> bool:
        found = sample.name if self.label == "__name__" else sample.labels.get(self.label, "")
        if self.operator in ("=", "!="):
            return (found == self.value) is (self.operator == "=")
        return (re.fullmatch(self.value, found) is not None) is (self.operator == "=~")


@dataclass(frozen=True)
class Selector:
    """One selector of a query, and the labels by which the aggregations around it group."""

    matchers: tuple[Matcher, ...]
    grouped_by: frozenset[str]

    def problems(self, samples: Sequence[Sample]) -> Iterator[str]:
        named = [sample for sample in samples if all(m.takes(sample) for m in self.matchers if m.label == "__name__")]
        if not named:
            yield f"no sample has the name {self.matchers[0].value}"
            return
        for label in {m.label for m in self.matchers} | self.grouped_by:
            if label not in {"__name__", *OF_PROMETHEUS} and not all(label in sample.labels for sample in named):
                yield f"{named[0].name} has no label {label}"
        if not any(all(m.takes(sample) for m in self.matchers) for sample in named):
            yield f"no sample matches ({self.matchers})"


_OPERATORS = {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}


def selectors(query: str) -> list[Selector]:
    """The selectors of a query. Raises ValueError for one that Prometheus would not understand."""
    return list(_selectors(promql_parser.parse(query), frozenset()))


def _selectors(node: Any, grouped_by: frozenset[str]) -> Iterator[Selector]:
    if isinstance(node, promql_parser.VectorSelector):
        name = [Matcher("__name__", "=", node.name)] if node.name else []
        others = [
            Matcher(one.name, _OPERATORS[str(one.op).partition(".")[2]], one.value) for one in node.matchers.matchers
        ]
        yield Selector((*name, *others), grouped_by)
        return
    if isinstance(node, promql_parser.AggregateExpr):
        grouped_by = grouped_by | frozenset(_grouping(node))
    for child in _children(node):
        yield from _selectors(child, grouped_by)


def _children(node: Any) -> list[Any]:
    found = [getattr(node, name, None) for name in ("expr", "lhs", "rhs", "vector_selector")]
    return [*(one for one in found if one is not None), *getattr(node, "args", [])]


def _grouping(node: Any) -> list[str]:
    return list(node.modifier.labels) if node.modifier is not None else []


def unmatched(query: str) -> list[str]:
    """The operations of a query between two vectors whose labels differ: they would find no pairs."""
    return list(_unmatched(promql_parser.parse(query)))


def _unmatched(node: Any) -> Iterator[str]:
    if isinstance(node, promql_parser.BinaryExpr):
        left, right = _labels(node.lhs), _labels(node.rhs)
        on = node.modifier.matching.labels if node.modifier is not None and node.modifier.matching is not None else None
        if on is not None and left is not None and right is not None:
            if not set(on) <= left & right:
                yield f"{node}: both sides need {on}, and have {left} and {right}"
        elif left is not None and right is not None and left != right:
            yield f"{node}: {left} against {right}"
    for child in _children(node):
        yield from _unmatched(child)


def _labels(node: Any) -> set[str] | None:
    """The labels of a result. None if it is a number."""
    if isinstance(node, promql_parser.AggregateExpr):
        return set(_grouping(node))
    if isinstance(node, promql_parser.BinaryExpr):
        left = _labels(node.lhs)
        return left if left is not None else _labels(node.rhs)
    inner = [_labels(child) for child in _children(node)]
    return next((one for one in inner if one is not None), None)
