"""Hides secrets in what the dashboard shows of jobs: values of fields by the field's name, and passwords in texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from jobwire.errors import InvalidOption
from jobwire.redact import redact as without_passwords

HIDDEN = "(hidden)"
FIELDS = (
    "passw(or)?d", "passphrase", "secret", "token", "authorization", "cookie", "credential", "api[-_]?key",
    "private[-_]?key", "access[-_]?key",
)  # fmt: skip
"""Patterns of the names of fields whose values are hidden, wherever they occur in the name."""
_DEEPEST = 60
_LONGEST_JSON = 1_000_000


class Redaction:
    """Hides values. Own patterns come in addition to FIELDS.

    >>> Redaction().value({"user": "ann", "apiKey": "k-17", "nested": [{"Password": "x"}]})
    {'user': 'ann', 'apiKey': '(hidden)', 'nested': [{'Password': '(hidden)'}]}
    >>> Redaction(["ssn"]).text("refused: {'ssn': '078-05', 'n': 1} Authorization: Bearer abc")
    "refused: {'ssn': (hidden), 'n': 1} Authorization: (hidden)"
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        own = [patterns] if isinstance(patterns, str) else list(patterns)
        for pattern in own:
            try:
                re.compile(pattern)
            except re.error as error:
                raise InvalidOption("redact", pattern, f"must be a regular expression: {error}") from None
        names = "|".join(f"(?:{pattern})" for pattern in (*FIELDS, *own))
        self._name = re.compile(names, re.IGNORECASE)
        # In texts: `name: value` and `name=value`, quoted or not. Lengths are limited so that a search stays linear.
        self._in_text = re.compile(
            rf"""((?:{names})[\w.-]{{0,40}}["']?\s?[:=]\s?)"""
            r"""("(?:[^"\\]|\\.){0,4000}"?|'(?:[^'\\]|\\.){0,4000}'?|(?:bearer|basic|digest)\s+\S+|[^\s,;&}\])]+)""",
            re.IGNORECASE,
        )

    def hides(self, name: str) -> bool:
        """Returns True if the value of a field of this name is hidden."""
        return self._name.search(name) is not None

    def text(self, text: str) -> str:
        """Returns the text without passwords of URLs and without values that follow a hidden name."""
        return self._in_text.sub(rf"\1{HIDDEN}", without_passwords(text))

    def value(self, value: Any, depth: int = 0) -> Any:
        """Returns a JSON value in which the values of hidden fields are replaced. A text that is JSON itself, as stores
        keep data, is looked into too."""
        if depth > _DEEPEST:
            return self.text(str(value))
        match value:
            case str():
                return self._of_text(value, depth)
            case bytes():
                return self._of_text(value.decode("utf-8", "replace"), depth)
            case Mapping():
                fields = cast("Mapping[Any, Any]", value)
                return {
                    str(name): HIDDEN if self.hides(str(name)) else self.value(inner, depth + 1)
                    for name, inner in fields.items()
                }
            case list() | tuple() | set() | frozenset():
                return [self.value(inner, depth + 1) for inner in cast("Iterable[Any]", value)]
            case None | bool() | int() | float():
                return value
            case _:
                return self.text(str(value))

    def _of_text(self, text: str, depth: int) -> Any:
        if text[:1] in ("{", "[") and len(text) <= _LONGEST_JSON:
            try:
                parsed = json.loads(text)
            except (ValueError, RecursionError):
                return self.text(text)
            shown = self.value(parsed, depth + 1)
            return text if shown == parsed else json.dumps(shown, ensure_ascii=False)
        return self.text(text)
