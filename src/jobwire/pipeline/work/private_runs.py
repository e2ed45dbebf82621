"""Applies the rules of privacy to what the lake keeps of a run: the id, the name and the error of its job."""

from __future__ import annotations

from typing import Any

from jobwire.pipeline.privacy.covering import MASK, Covered, cover, is_name
from jobwire.pipeline.privacy.rules import QueueRules
from jobwire.pipeline.privacy.scrub import Scrubber


def scrubber_of(payload: Any, rules: QueueRules) -> Scrubber:
    """Returns the scrubber of the values that the rules cover in a payload."""
    covered = Covered()
    cover(payload, "$", rules, covered)
    return Scrubber(covered.values)


def scrubbed(
    rules: QueueRules, scrub: Scrubber, job_id: str, name: str, error: str | None
) -> tuple[str, str, str | None]:
    """Returns the texts of a run without covered values. An id that holds one is hashed, as in bronze."""
    if scrub.finds_in_id(job_id):
        job_id = rules.digest(job_id) if rules.key else MASK
    # A name that a programmer chose may be a value by chance.
    return job_id, name if is_name(name) else scrub.text(name) or "", scrub.text(error)
