"""The notation of scenarios: a line is a step, and both interpreters read the same steps.

    == jobs with a priority wait for those without          a title begins a scenario
    ~ name of a difference                                  a known one, that must show here (differences.py);
                                                            `~5` or `~6`: beside that major only
    # for the reader
    add a {"priority": 5}                                   verb, then words and JSON values
    add@other b                                             a verb of another queue than `q`

Options have the peer's names and milliseconds, whoever runs the step. A word `#n` stands for a job: the n-th that was
added (for verbs of an operator) or the n-th that is held (for verbs of a worker), counted round and round.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WORD = re.compile(r'[^\s{\["]\S*')
_DECODER = json.JSONDecoder()
DEFAULT_QUEUE = "q"


@dataclass(frozen=True)
class Step:
    verb: str
    args: tuple[Any, ...] = ()
    queue: str = DEFAULT_QUEUE

    def __str__(self) -> str:
        where = "" if self.queue == DEFAULT_QUEUE else f"@{self.queue}"
        words = [arg if isinstance(arg, str) and _WORD.fullmatch(arg) else json.dumps(arg) for arg in self.args]
        return " ".join([self.verb + where, *words])


@dataclass
class Scenario:
    title: str
    steps: list[Step] = field(default_factory=list[Step])
    differences: dict[int, list[str]] = field(default_factory=lambda: {5: [], 6: []})
    """Names of known differences, by the major of the peer."""


def parse_step(line: str) -> Step:
    """One line.

    >>> parse_step('add@other a {"priority": 5} 7')
    Step(verb='add', args=('a', {'priority': 5}, 7), queue='other')
    """
    head, _, rest = line.strip().partition(" ")
    verb, _, queue = head.partition("@")
    return Step(verb, tuple(_values(rest)), queue or DEFAULT_QUEUE)


def _values(text: str) -> list[Any]:
    found: list[Any] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        word = _WORD.match(text, at)
        if word:
            found.append(_plain(word[0]))
            at = word.end()
        else:
            value, at = _DECODER.raw_decode(text, at)
            found.append(value)
    return found


def _plain(word: str) -> Any:
    """A bare word is a text, unless it reads as a JSON number, true, false or null."""
    try:
        return json.loads(word)
    except ValueError:
        return word


def parse(text: str) -> list[Scenario]:
    scenarios: list[Scenario] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("# "):
            continue
        if line.startswith("== "):
            scenarios.append(Scenario(line[3:]))
            continue
        if not scenarios:
            raise ValueError(f"line {number} belongs to no scenario: {line}")
        if line.startswith("~"):
            which, _, name = line[1:].partition(" ")
            for major in (int(which),) if which else (5, 6):
                scenarios[-1].differences[major].append(name)
        else:
            scenarios[-1].steps.append(parse_step(line))
    return scenarios


def load(folder: Path) -> dict[str, Scenario]:
    """All scenarios of a folder by `file: title`."""
    found: dict[str, Scenario] = {}
    for file in sorted(folder.glob("*.steps")):
        for scenario in parse(file.read_text("utf-8")):
            name = f"{file.stem}: {scenario.title}"
            assert name not in found, f"{name} is there twice"
            found[name] = scenario
    return found
