"""The sentence about what has been done, which the page after an action begins with."""

from __future__ import annotations

from collections import Counter

from jobwire.boundary import Acted
from jobwire.counted import counted
from jobwire.dashboard.actions import ACTS
from jobwire.dashboard.board import Call
from jobwire.dashboard.campaign_acts import CAMPAIGN_ACTS

_QUEUE_ACTS = {"pause": "The queue is paused.", "resume": "The queue is resumed.", "limits": "The limits are changed."}
_NAMES = {answer: answer.name.lower() for answer in Acted}


def outcome(verb: str, answers: Counter[Acted]) -> dict[str, str | int | None]:
    """Returns the parameters by which the next page states what was done: a word and numbers, no free text."""
    return {"did": verb, **{_NAMES[answer]: number or None for answer, number in answers.items()}}


def said(call: Call) -> str:
    """Returns the sentence for the parameters of the URL, or an empty text."""
    did = call.given("did")
    if did in _QUEUE_ACTS:
        return _QUEUE_ACTS[did]
    act = ACTS.get(did)
    if act is None:
        return ""
    numbers = {answer: _number(call.given(name)) for answer, name in _NAMES.items()}
    sentences = [f"{act.past.capitalize()} {counted(numbers[Acted.DONE], 'job')}."]
    sentences += [
        f"Not {act.past}: {counted(number, 'job')}, {answer.reason}."
        for answer, number in numbers.items()
        if answer is not Acted.DONE and number
    ]
    return " ".join(sentences)


def campaign_said(call: Call) -> str:
    """Returns the sentence about what was done to a campaign, or an empty text."""
    act = CAMPAIGN_ACTS.get(call.given("did"))
    return f"The campaign is {act.past}. {act.effect}" if act is not None else ""


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0
