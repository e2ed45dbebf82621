"""Takes covered values out of the other texts of a job: errors, stacks, results, logs, native fields.

A text is searched for the value as it is, whatever its case, and as JSON, URLs and Python's repr write it. Texts of one
or two characters and numbers of less than five digits are not searched for: any other text may have them by chance. A
number counts where it stands alone. In ids it needs nine digits: most stores number their jobs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any, cast
from urllib.parse import quote, quote_plus

from jobwire import codec
from jobwire.error_class import specific_class
from jobwire.errors import InvalidOption, MalformedPayload
from jobwire.pipeline.privacy.covering import MASK, is_name

_SHORTEST_TEXT = 3
_SHORTEST_NUMBER = 5
_SHORTEST_NUMBER_IN_ID = 9
_SIMPLE = re.compile(r"[A-Za-z0-9 @.,:;_%+-]+")
"""Texts that JSON writes as they are, also within another text."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")


class Scrubber:
    """Finds the covered values of one job in its other texts."""

    def __init__(self, values: Iterable[str | int | float]) -> None:
        self._exact = {form for value in values for form in _forms(value)}
        self._lowered = [form.lower() for form in self._exact]
        self._simple = all(_SIMPLE.fullmatch(form) for form in self._exact)

    def __bool__(self) -> bool:
        return bool(self._exact)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self._exact, key=lambda one: (-len(one), one))
        return re.compile("|".join(map(_alone, longest_first)), re.IGNORECASE)

    def _may_be_in(self, text: str) -> bool:
        """Returns False if none of the values can be in a text. Most texts have none, and a pattern for each job takes
        five times as long as all the rest. Values that JSON within JSON writes otherwise are always looked for."""
        if not self._exact:
            return False
        return not self._simple or "\\u" in text or any(map(text.lower().__contains__, self._lowered))

    def text(self, text: str | None) -> str | None:
        """Returns the text without the values."""
        return self._pattern.sub(MASK, text) if text and self._may_be_in(text) else text

    def finds_in_id(self, job_id: str) -> bool:
        if not self._may_be_in(job_id):
            return False
        found = self._pattern.finditer(job_id)
        return any(len(one[0]) >= _SHORTEST_NUMBER_IN_ID or not _NUMBER.fullmatch(one[0]) for one in found)

    def json(self, text: str | None) -> str | None:
        """Returns a JSON text without the values, still JSON; as it is if they are not in it."""
        if not text or not self._may_be_in(text):
            return text
        try:
            value = codec.loads(text)
        except MalformedPayload:
            return json.dumps(self.text(text))
        scrubbed = self.value(value)
        return text if scrubbed == value else json_text(scrubbed)

    def value(self, value: Any) -> Any:
        """Returns a JSON value without the values. A text that is itself JSON is searched as such."""
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {name if is_name(name) else self.text(name): self.value(each) for name, each in members.items()}
        if isinstance(value, list):
            return [self.value(each) for each in cast("list[Any]", value)]
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return MASK if str(value) in self._exact else value
        return value

    def _string(self, text: str) -> str | None:
        if text[:1] in ("{", "["):
            try:
                value = codec.loads(text)
            except MalformedPayload:
                return self.text(text)
            scrubbed = self.value(value)
            return text if scrubbed == value else json_text(scrubbed)
        if _TIME.match(text) and text not in self._exact:
            return text  # a day among the values must not break the times of native fields
        return self.text(text)


def json_text(value: Any) -> str:
    """Returns a JSON value as the codec writes it; numbers that no double holds keep their digits."""
    try:
        return codec.dumps(value).decode()
    except InvalidOption:
        return json.dumps(value, separators=(",", ":"))


def without_message(error: str) -> str:
    """Returns what is left of an error if nothing of its message may be kept: the exception's name.

    >>> without_message("smtp.TimeoutError: no answer for ann@example.org"), without_message("ann@example.org is gone")
    ('TimeoutError: ***', '***')
    """
    name = specific_class(error)
    return f"{name}: {MASK}" if name else MASK


def _forms(value: str | int | float) -> set[str]:
    text = value.strip() if isinstance(value, str) else str(value)
    if len(text) < (_SHORTEST_NUMBER if _NUMBER.fullmatch(text) else _SHORTEST_TEXT):
        return set()
    if _SIMPLE.fullmatch(text):
        return {text, quote(text, safe=""), quote_plus(text)} if not text.isalnum() else {text}
    written = (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1])
    return {*written, quote(text), quote(text, safe=""), quote_plus(text)}


def _alone(text: str) -> str:
    """Returns the pattern of a value. Digits count as a value of their own, not as a part of a longer number."""
    pattern = re.escape(text)
    before = r"(?<!\d)" if text[0].isdigit() else ""
    return before + pattern + (r"(?!\d)" if text[-1].isdigit() else "")
