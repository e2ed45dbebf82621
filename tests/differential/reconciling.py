"""How a store would have to be changed to be the other one: what the table of known differences is made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .snapshot import Snapshot

Reconcile = Callable[[Snapshot, Snapshot], tuple[Snapshot, Snapshot]]
"""Takes the peer's store and jobwire's, and gives both back without the difference."""


def without_keys(*ends: str) -> Reconcile:
    def reconcile(theirs: Snapshot, ours: Snapshot) -> tuple[Snapshot, Snapshot]:
        left = [{key: value for key, value in store.items() if not key.endswith(ends)} for store in (theirs, ours)]
        return left[0], left[1]

    return reconcile


def as_they_are(theirs: Snapshot, ours: Snapshot) -> tuple[Snapshot, Snapshot]:
    return theirs, ours


def _without_words(store: Snapshot, words: tuple[str, ...]) -> Snapshot:
    """Each of the sentences becomes the same word, in fields and in events."""

    def tidy(value: Any) -> Any:
        if isinstance(value, str):
            for sentence in words:
                value = re.sub(sentence, "<children>", value)
            return value
        if isinstance(value, list):
            return [tidy(item) for item in value]
        return {field: tidy(item) for field, item in value.items()} if isinstance(value, dict) else value

    return {key: tidy(value) for key, value in store.items()}


def same_words(*sentences: str) -> Reconcile:
    return lambda theirs, ours: (_without_words(theirs, sentences), _without_words(ours, sentences))


def without_field(field: str) -> Reconcile:
    def left(store: Snapshot) -> Snapshot:
        return {
            key: {name: item for name, item in value.items() if name != field} if isinstance(value, dict) else value
            for key, value in store.items()
        }

    return lambda theirs, ours: (left(theirs), left(ours))


def without_event(name: str) -> Reconcile:
    def left(store: Snapshot) -> Snapshot:
        return {
            key: [event for event in value if not f"{event} ".startswith(f"event {name} ")]
            if key.endswith(":events")
            else value
            for key, value in store.items()
        }

    return lambda theirs, ours: (left(theirs), left(ours))


def unpaused(theirs: Snapshot, ours: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Take back what the refused call of the peer did."""
    restored = dict(theirs)
    restored["bull:q:meta"] = {field: value for field, value in theirs["bull:q:meta"].items() if field != "paused"}
    restored["bull:q:events"] = [event for event in theirs["bull:q:events"] if event != "event paused"]
    restored["bull:q:marker"] = ours["bull:q:marker"]
    return restored, ours


def without_delay_marker(theirs: Snapshot, ours: Snapshot) -> tuple[Snapshot, Snapshot]:
    left = [
        {
            key: [row for row in value if row[0] != "1"] if key.endswith(":marker") else value
            for key, value in store.items()
            if not (key.endswith(":marker") and all(row[0] == "1" for row in value))
        }
        for store in (theirs, ours)
    ]
    return left[0], left[1]


def one_waiting_list(theirs: Snapshot, ours: Snapshot) -> tuple[Snapshot, Snapshot]:
    """The list that BullMQ 5 calls `paused` while a queue is paused goes by its other name."""
    joined = {key: value for key, value in ours.items() if not key.endswith(":paused")}
    for key, value in ours.items():
        if key.endswith(":paused"):
            wait = key.removesuffix("paused") + "wait"
            joined[wait] = ours.get(wait, []) + value
        elif key.endswith(":events"):
            joined[key] = [re.sub(r"^(event removed .* prev) paused$", r"\1 wait", event) for event in value]
    return theirs, joined
