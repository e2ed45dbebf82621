"""Turns a store's answer about one job into the error that it stands for."""

from __future__ import annotations

from jobwire.boundary import Acted
from jobwire.errors import JobNotFound, WrongState


def require_done(queue: str, job_id: str, acted: Acted, refusal: str) -> None:
    """Returns if the action was done, else raises JobNotFound or WrongState: "job '7' can't be " and the refusal."""
    match acted:
        case Acted.DONE:
            return
        case Acted.NOT_FOUND:
            raise JobNotFound(queue, job_id)
        case Acted.LOCKED:
            raise WrongState(f"job {job_id!r} can't be changed: a worker is running it")
        case Acted.WRONG_STATE:
            raise WrongState(f"job {job_id!r} can't be {refusal}")
