"""Hides secrets in what the dashboard shows of jobs: values of fields by the field's name, and passwords in texts.

A text is cut before it is searched, so that the work is bounded by what is shown and not by what is stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, cast

from jobwire.dashboard.text_secrets import values_after
from jobwire.errors import InvalidOption
from jobwire.redact import redact as without_passwords

HIDDEN = "(hidden)"
FIELDS = (
    "passw(or)?d", "passphrase", "secret", "token", "authorization", "cookie", "credential", "api[-_]?key",
    "private[-_]?key", "access[-_]?key",
)  # fmt: skip
"""Patterns of the names of fields whose values are hidden, wherever they occur in the name."""
LONGEST_TEXT = 4000
"""Characters of a text that are shown if nothing else is asked for."""
_LONGEST_NAME = 1000
_DEEPEST = 60
_URL_TO_THE_END = re.compile(r"""://[^\s"]*\Z""")


class Redaction:
    """Hides values. Own patterns come in addition to FIELDS.

    >>> Redaction(["ssn"]).text("refused: {'ssn': '078-05', 'n': 1} Authorization: Bearer abc")
    "refused: {'ssn': (hidden), 'n': 1} Authorization: (hidden)"
    >>> Redaction().text("tokens: ['A', 'B'] credentials={'user': 'ann', 'pin': 'P'} n=1")
    'tokens: (hidden) credentials=(hidden) n=1'
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        own = [patterns] if isinstance(patterns, str) else list(patterns)
        for pattern in own:
            try:
                re.compile(pattern)
            except re.error as error:
                raise InvalidOption("redact", pattern, f"must be a regular expression: {error}") from None
        self._name = re.compile("|".join(f"(?:{pattern})" for pattern in (*FIELDS, *own)), re.IGNORECASE)

    def hides(self, name: str) -> bool:
        """Returns True if the value of a field of this name is hidden."""
        return self._name.search(name[:_LONGEST_NAME]) is not None

    def text(self, text: str, longest: int = LONGEST_TEXT) -> str:
        """Returns the beginning of the text without passwords of URLs and without values that follow a hidden name.
        Reads no more than `longest` characters. A text that is JSON, as stores keep data, is looked into."""
        cut = text[:longest]
        whole = len(text) <= longest
        if whole and cut[:1] in ("{", "["):
            try:
                parsed = json.loads(cut)
            except (ValueError, RecursionError):
                return self._in_text(cut)
            shown = self._in_json(parsed, 0)
            return cut if shown == parsed else json.dumps(shown, ensure_ascii=False)
        if not whole and (unfinished := _URL_TO_THE_END.search(cut, max(0, cut.rfind("://")))) is not None:
            return self._in_text(cut[: unfinished.start() + 3]) + "***"  # the @ after its password may be cut off
        return self._in_text(cut)

    def _in_text(self, text: str) -> str:
        shown: list[str] = []
        at = 0
        for name, begin, end in values_after(text, self.hides):
            shown += without_passwords(text[at : max(at, name)]), text[max(at, name) : begin], HIDDEN
            at = end
        return "".join(shown) + without_passwords(text[at:])

    def _in_json(self, value: Any, depth: int) -> Any:
        """Returns a value of a short text of JSON with the values of hidden fields replaced."""
        if depth > _DEEPEST:
            return HIDDEN
        match value:
            case dict():
                fields = cast("dict[str, Any]", value)
                return {
                    name: HIDDEN if self.hides(name) else self._in_json(inner, depth + 1)
                    for name, inner in fields.items()
                }
            case list():
                return [self._in_json(inner, depth + 1) for inner in cast("list[Any]", value)]
            case str():
                return self.text(value, len(value))
            case _:
                return value
