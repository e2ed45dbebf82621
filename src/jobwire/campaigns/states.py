"""The states of campaigns and jobs, and the changes between them that are allowed.

A campaign is QUEUED until it is started, RUNNING and PAUSED as often as needed, and ends once: COMPLETED with its last
job, FAILED by an error of its own, CANCELLED by a person. A job is QUEUED, then SENDING while a worker has it. From
there it is SENT, FAILED, or QUEUED again for its next attempt. A QUEUED job becomes FAILED without being sent if
its channel was blocked or does not exist.

The store makes every change by one UPDATE that names the states it may start from. What it changed is therefore
decided by the database, also between programs that act at the same moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from jobwire.errors import WrongState


class CampaignStatus(StrEnum):
    """The state of a campaign."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class JobStatus(StrEnum):
    """The state of a job."""

    QUEUED = "QUEUED"
    SENDING = "SENDING"
    SENT = "SENT"
    FAILED = "FAILED"


CAMPAIGN: Mapping[CampaignStatus, tuple[CampaignStatus, ...]] = {
    CampaignStatus.QUEUED: (CampaignStatus.RUNNING, CampaignStatus.CANCELLED),
    CampaignStatus.RUNNING: (
        CampaignStatus.PAUSED,
        CampaignStatus.COMPLETED,
        CampaignStatus.FAILED,
        CampaignStatus.CANCELLED,
    ),
    # COMPLETED: by the settling of a last message that was being sent when the campaign was paused.
    CampaignStatus.PAUSED: (CampaignStatus.RUNNING, CampaignStatus.COMPLETED, CampaignStatus.CANCELLED),
    CampaignStatus.COMPLETED: (),
    CampaignStatus.FAILED: (),
    CampaignStatus.CANCELLED: (),
}
JOB: Mapping[JobStatus, tuple[JobStatus, ...]] = {
    JobStatus.QUEUED: (JobStatus.SENDING, JobStatus.FAILED),
    JobStatus.SENDING: (JobStatus.SENT, JobStatus.FAILED, JobStatus.QUEUED),
    JobStatus.SENT: (),
    JobStatus.FAILED: (),
}
OPEN = tuple(status for status in CampaignStatus if CAMPAIGN[status])
"""The states of a campaign that has not ended."""


class IllegalTransition(WrongState):
    """The change from one state to the other is not allowed."""

    def __init__(self, what: str, current: str, wanted: str) -> None:
        status: CampaignStatus | JobStatus
        if what.startswith("job"):
            status, possible = JobStatus(current), JOB[JobStatus(current)]
        else:
            status, possible = CampaignStatus(current), CAMPAIGN[CampaignStatus(current)]
        if wanted == CampaignStatus.RUNNING and wanted in possible:  # by the other one of two verbs
            sentence = f"{what} is {status}: {'start' if status == CampaignStatus.QUEUED else 'resume'} it instead"
        else:
            rest = f"it can become {' or '.join(possible)}" if possible else "it has ended and can't change any more"
            sentence = f"{what} is {status} and can't become {wanted}: {rest}"
        super().__init__(sentence)
        self.what = what
        self.current = current
        self.wanted = wanted

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.current, self.wanted)


class Ended(WrongState):
    """The campaign has ended, and nothing of it can be changed any more."""

    def __init__(self, what: str, current: str) -> None:
        super().__init__(f"{what} is {current}: it has ended and can't be changed any more")
        self.what = what
        self.current = current

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.current)


def sources(wanted: CampaignStatus) -> list[str]:
    """Returns the states from which a campaign can become the wanted one.

    >>> sources(CampaignStatus.CANCELLED)
    ['QUEUED', 'RUNNING', 'PAUSED']
    """
    return [status.value for status, following in CAMPAIGN.items() if wanted in following]


def check_campaign(what: str, current: CampaignStatus, wanted: CampaignStatus) -> None:
    """Raises IllegalTransition if a campaign can't change so.

    >>> check_campaign("campaign 'spring'", CampaignStatus.COMPLETED, CampaignStatus.PAUSED)
    Traceback (most recent call last):
        ...
    jobwire.campaigns.states.IllegalTransition: campaign 'spring' is COMPLETED and can't become PAUSED: it has ended and can't change any more
    """  # noqa: E501 - the message is one line
    if wanted not in CAMPAIGN[current]:
        raise IllegalTransition(what, current, wanted)


def check_job(what: str, current: JobStatus, wanted: JobStatus) -> None:
    """Raises IllegalTransition if a job can't change so."""
    if wanted not in JOB[current]:
        raise IllegalTransition(what, current, wanted)
