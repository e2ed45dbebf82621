"""JSON paths of rules: `$.customer.email`, `$.items[*].note`, `$..phone`, `result.token`, `progress`.

A path begins with the document that it is in: `$` for the job's payload, `result` or `progress`. `.name` and `["name"]`
are a member, `.*` all members, `[*]` all elements of an array, `..name` all members of that name at any depth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from jobwire.errors import InvalidOption

PAYLOAD = "$"
DOCUMENTS = (PAYLOAD, "result", "progress")
ANY = "*"
"""Every member of an object, or every element of an array."""
DEEP = ".."
"""The step before a name that may be at any depth."""

_STEP = re.compile(
    r"""(?P<deep>\.\.)(?P<far>[^\s.\[\]"'*$]+)
    | \.(?P<near>[^\s.\[\]"'*$]+)
    | \[(?:"(?P<double>[^"]+)"|'(?P<single>[^']+)')\]
    | (?P<any>\.\*|\[\*\])
    | \[(?P<number>-?\d+)\]""",
    re.VERBOSE,
)
_RULE = 'must be a path such as $.customer.email, $.items[*].note, $["odd name"], $..phone, result.token or progress'


@dataclass(frozen=True)
class Path:
    """A path in one of a job's documents. A step is a name, `ANY`, or `DEEP` before a name."""

    text: str
    document: str
    steps: tuple[str, ...]

    @cached_property
    def exact(self) -> bool:
        """Returns whether the path stands for one place only."""
        return ANY not in self.steps and DEEP not in self.steps


def parse_path(text: str, field: str) -> Path:
    """Returns the path. Raises InvalidOption that names the field.

    >>> parse_path('$.items[*]["the note"]', "path").steps
    ('items', '*', 'the note')
    """
    document = next((one for one in DOCUMENTS if text == one or text.startswith((f"{one}.", f"{one}["))), None)
    if document is None:
        raise InvalidOption(field, text, f"{_RULE}: it begins with $ for the payload, or with result or progress")
    steps: list[str] = []
    at = len(document)
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise InvalidOption(field, text, f"{_RULE}: it can't be read from {text[at:]!r} on")
        if found["number"]:
            raise InvalidOption(field, text, f"{_RULE}: [{found['number']}] names one element, write [*] for all")
        at = found.end()
        if found["deep"]:
            steps.append(DEEP)
        steps.append(
            ANY if found["any"] else next(name for name in found.group("far", "near", "double", "single") if name)
        )
    return Path(text, document, tuple(steps))
